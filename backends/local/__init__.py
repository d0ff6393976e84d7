"""Apps on this machine: a process for each replica, and one for each app, its supervisor, which outlives the launcher.

``<log folder>/<session>/<app id>/`` has TorchX's layout, ``<role>/<replica>/stdout.log`` and so on, and state.json.
``<state folder>/local/runs/`` has a small file for each app with the path of that folder, ``local/turns/`` one for each
app that waits or runs.
"""
