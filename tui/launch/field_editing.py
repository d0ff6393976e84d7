"""Editing a field of the launch form in a dialog of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .field_dialogs import Choice, ChoiceDialog, ItemsDialog

if TYPE_CHECKING:
    from ...settings.config import Profile
    from ...settings.launch_defaults import LaunchDefaults
    from .form_editor import FormEditor
    from .form_field import Field

_NO_PROFILE = "no profile"


class FieldEditing:
    """Opens the dialogs of fields, and hands on what comes of them.

    Args:
        editor: whose fields they are.
    """

    def __init__(self, editor: FormEditor) -> None:
        self._editor = editor

    def open(self, field: Field) -> None:
        """Edit a field in the dialog that fits it; one that is a line and no more has none."""
        if field.is_swept or not field.editor:
            return
        if field.editor == "resource":
            self._editor.list_resources(field)
            return
        if field.editor == "choice":
            dialog: ChoiceDialog | ItemsDialog = ChoiceDialog(
                field.name, [Choice(text) for text in field.known or field.offered], taken=field.text
            )
        elif len(field.text.splitlines()) > 1:
            # A dialog with an item a line would make several of one.
            self._editor.dashboard.status.say(
                f"{field.name} has an item of several lines: edit it in its field", failed=True
            )
            return
        else:
            dialog = ItemsDialog(field)
        self._editor.app.push_screen(dialog, lambda text: self._take(field, text))

    def choose_resource(self, field: Field, rows: Sequence[tuple[str, str, str, str]]) -> None:
        """Choose among the named resources.

        Args:
            field: the field.
            rows: name, cpu, gpu and memory (GB) of each.
        """
        choices = [Choice("", ("", "", ""), "none")] if not field.required else []
        choices += [Choice(name, (cpu, gpu, memory)) for name, cpu, gpu, memory in rows]
        dialog = ChoiceDialog(field.name, choices, ("cpu", "gpu", "GB"), field.text)
        self._editor.app.push_screen(dialog, lambda text: self._take(field, text))

    def _take(self, field: Field, text: str | None) -> None:
        if text is not None:
            self._editor.call_later(self._editor.take_text, field.section, field.name, text)

    def choose_profile(self, profiles: Mapping[str, Profile], defaults: LaunchDefaults | None) -> None:
        """Choose among the profiles of config.toml."""
        if not profiles:
            self._editor.dashboard.status.say("config.toml has no profiles: add a table [profiles.NAME]", failed=True)
            return
        taken = defaults.profile if defaults else ""
        choices = [
            Choice(_NO_PROFILE, ("",)),
            *(Choice(name, (profile.scheduler,)) for name, profile in profiles.items()),
        ]
        dialog = ChoiceDialog("Profile", choices, ("scheduler",), taken or _NO_PROFILE)
        self._editor.app.push_screen(dialog, self._take_profile)

    def _take_profile(self, name: str | None) -> None:
        if name is not None:
            self._editor.take_profile(None if name == _NO_PROFILE else name)
