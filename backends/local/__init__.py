"""Apps on this machine: one process a replica, and a supervisor process an app that outlives whoever launched it.

``<log folder>/<session>/<app id>/`` has TorchX's layout, ``<role>/<replica>/stdout.log`` and so on, and our state.json.
``<state folder>/local/runs/`` has one small file an app that says where that folder is, ``local/turns/`` one for each
app that waits or runs.
"""
