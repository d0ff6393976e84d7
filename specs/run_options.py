"""The options that a scheduler accepts, and how given ones are read, checked and completed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cfg_text import split_cfg
from .errors import InvalidRunConfigException
from .option_types import CfgVal, get_type_name, is_type, runopt


def _snake(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class runopts:  # noqa: N801 - TorchX's name
    """The options of a scheduler. Iterating gives pairs of name and `runopt`; `str()` is the help for all of them.

    Names are equal in snake_case and camelCase: `clusterName` is `cluster_name`.
    """

    def __init__(self) -> None:
        self._opts: dict[str, runopt] = {}

    def __iter__(self) -> Iterator[tuple[str, runopt]]:
        return iter(self._opts.items())

    def __len__(self) -> int:
        return len(self._opts)

    def __or__(self, other: runopts) -> runopts:
        both = runopts()
        both.update(self)
        both.update(other)
        return both

    def add(
        self,
        cfg_key: str,
        type_: Any,
        help: str,
        default: CfgVal = None,
        required: bool = False,
        *,
        aliases: Sequence[str] | None = None,
        deprecated_aliases: Sequence[str] | None = None,
    ) -> None:
        """Declare an option.

        Args:
            cfg_key: Its name.
            type_: `str`, `int`, `float`, `bool`, `list[str]` or `dict[str, str]`.
            help: What it does.
            default: Its value where none is given; None is allowed for every type.
            required: Whether a value must be given; such an option has no default.
            aliases: Further names, beside the camelCase form.
            deprecated_aliases: Further names that are not advertised any more.

        Raises:
            ValueError: A required option has a default.
            TypeError: The default is not of the type.
        """
        if required and default is not None:
            raise ValueError(f"The option {cfg_key} is required, so it has no default. Given: {default}")
        if default is not None and not self.is_type(default, type_):
            raise TypeError(f"The option {cfg_key} is {get_type_name(type_)}. Given as default: {default!r}")
        names = [*(aliases or ()), *(deprecated_aliases or ())]
        self._opts[cfg_key] = runopt(default, type_, required, help, names)

    def update(self, other: runopts) -> None:
        """Take over all options of another set, which win over ours of the same name."""
        self._opts.update(other._opts)

    def get(self, name: str) -> runopt | None:
        """Return an option by any of its spellings, or None."""
        key = self.canonical_key(name)
        return None if key is None else self._opts[key]

    def canonical_key(self, name: str) -> str | None:
        """Return the declared name that a spelling stands for, or None where it is no option."""
        if name in self._opts:
            return name
        for key, opt in self._opts.items():
            if name in opt.aliases:
                return key
        snake = _snake(name)
        return next((key for key in self._opts if _snake(key) == snake), None)

    @staticmethod
    def is_type(obj: CfgVal, tp: Any) -> bool:
        """Return whether a value is of a type, as `isinstance` but for `list[str]` and `dict[str, str]` too."""
        return is_type(obj, tp)

    def check(self, cfg: Mapping[str, CfgVal]) -> None:
        """Check options without filling in defaults.

        Raises:
            InvalidRunConfigException: As for `resolve`.
        """
        self.resolve(cfg)

    def resolve(self, cfg: Mapping[str, CfgVal], *, ignore_unknown: bool = False) -> dict[str, CfgVal]:
        """Return a new mapping of all options, the given ones checked, the others at their defaults.

        Args:
            cfg: Options by any spelling. None stands for "not given" in a required option's check.
            ignore_unknown: Pass unknown options through instead of refusing them.

        Raises:
            InvalidRunConfigException: An option is unknown, of another type, missing though required, or given twice
                with different values.
        """
        resolved = self._canonical(cfg, ignore_unknown=ignore_unknown, keep_unknown=True)
        for key, opt in self._opts.items():
            value = resolved.setdefault(key, None if opt.is_required else opt.default)
            if value is None and opt.is_required:
                raise InvalidRunConfigException(
                    f"Required run option: {key}, must be provided and not `None`", key, cfg
                )
            if value is not None and not self.is_type(value, opt.opt_type):
                reason = (
                    f"Run option: {key}, must be of type: {get_type_name(opt.opt_type)},"
                    f" but was: {value} ({type(value).__name__})"
                )
                raise InvalidRunConfigException(reason, key, cfg)
        return resolved

    def cfg_from_str(self, cfg_str: str) -> dict[str, CfgVal]:
        """Return the options of a text such as `log_dir=/tmp,prepend_cwd=true`, without defaults.

        Pairs and the items of lists are separated by `,` or `;`; the last one before the next `=` ends a pair. Quotes
        keep a value together.

        Raises:
            InvalidRunConfigException: A pair is malformed, an option unknown, or a value not of its type.
        """
        try:
            texts = split_cfg(cfg_str)
        except ValueError as error:
            raise InvalidRunConfigException(str(error), "", {}) from error
        values: dict[str, CfgVal] = {}
        for name, text in texts.items():
            opt = self.get(name)
            if opt is None:
                raise self._unknown(name, texts)
            try:
                values[name] = opt.cast_to_type(text)
            except ValueError as error:
                raise InvalidRunConfigException(f"Run option: {name}: {error}", name, texts) from error
        return self._canonical(values)

    def cfg_from_json_repr(self, json_repr: str, *, ignore_unknown: bool = False) -> dict[str, CfgVal]:
        """Return the options of a JSON object, without defaults; items of lists and dicts become texts.

        Args:
            json_repr: The JSON text.
            ignore_unknown: Drop unknown options instead of refusing them.

        Raises:
            InvalidRunConfigException: It is no JSON object, or an option is unknown or a list or dict is not one.
        """
        try:
            values = json.loads(json_repr)
        except ValueError as error:
            raise InvalidRunConfigException(f"The run options are not JSON: {error}", "", {}) from error
        if not isinstance(values, dict):
            raise InvalidRunConfigException(f"The run options are not a JSON object: {json_repr}", "", {})
        cfg = self._canonical(values, ignore_unknown=ignore_unknown)
        for key, value in cfg.items():
            opt = self._opts[key]
            if value is None:
                continue
            if opt.is_type_list_of_str and isinstance(value, list):
                cfg[key] = [str(item) for item in value]
            elif opt.is_type_dict_of_str and isinstance(value, dict):
                cfg[key] = {str(name): str(item) for name, item in value.items()}
            elif opt.is_type_list_of_str or opt.is_type_dict_of_str:
                reason = f"Run option: {key}, must be of type: {get_type_name(opt.opt_type)}"
                raise InvalidRunConfigException(f"{reason}, but was: {value} ({type(value).__name__})", key, values)
        return cfg

    def _canonical(
        self, cfg: Mapping[str, CfgVal], *, ignore_unknown: bool = False, keep_unknown: bool = False
    ) -> dict[str, CfgVal]:
        """Return options under their declared names, each once."""
        canonical: dict[str, CfgVal] = {}
        spelled: dict[str, str] = {}
        for name, value in cfg.items():
            key = self.canonical_key(name)
            if key is None:
                if not ignore_unknown:
                    raise self._unknown(name, cfg)
                if keep_unknown:
                    canonical[name] = value
                continue
            if key in spelled and canonical[key] != value:
                reason = (
                    f"Run option `{key}` is given twice, as `{spelled[key]}` and as `{name}`, with different values"
                )
                raise InvalidRunConfigException(reason, key, cfg)
            spelled.setdefault(key, name)
            canonical[key] = value
        return canonical

    def _unknown(self, name: str, cfg: Mapping[str, CfgVal]) -> InvalidRunConfigException:
        valid = ", ".join(sorted(self._opts)) or "(this scheduler has none)"
        return InvalidRunConfigException(f"Unknown run option `{name}`. Valid options are: {valid}", name, cfg)

    def __repr__(self) -> str:
        required = [(key, opt) for key, opt in self._opts.items() if opt.is_required]
        optional = [(key, opt) for key, opt in self._opts.items() if not opt.is_required]
        usage = [f"{key}={key.upper()}" for key, _ in required]
        usage += [f"[{key}={key.upper()}]" for key, _ in optional]
        lines = ["    usage:", f"        {','.join(usage)}"]
        for title, group in (("required", required), ("optional", optional)):
            if group:
                lines += ["", f"    {title} arguments:"]
            for key, opt in group:
                default = "" if opt.is_required else f", {opt.default}"
                lines.append(f"        {key}={key.upper()} ({get_type_name(opt.opt_type)}{default})")
                lines.append(f"            {opt.help}")
        return "\n".join(lines)
