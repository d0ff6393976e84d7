"""A user's own sbatch script as a component: its `#SBATCH` lines and positional arguments are parameters.

Changes go to the command line of sbatch, which overrides the script's lines. The script itself is not changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..specs.batch_script import BatchScript
from ..specs.errors import ArgumentError
from ..specs.roles import AppDef
from ..specs.sbatch_options import OPTIONS, SbatchOption
from .model import REQUIRED, ComponentDoc, LinterMessage, Parameter, ParameterKind, ValueType
from .sbatch_script import REST, SbatchScript, ScriptValue, read_script
from .values import Texts, checked_value, parameters_by_name, to_text

_SCHEDULER = "slurm"


def describe_batch_script(name: str) -> ComponentDoc:
    """Return the description of a script. Raises as `read_script` does."""
    script = read_script(name)
    summary, _, description = script.comment.partition("\n")
    return ComponentDoc(
        name=name,
        kind="script",
        summary=summary,
        description=description.strip(),
        parameters=[*_parameters(script)],
        path=script.path,
        line=1,
        findings=tuple(_findings(script)),
        scheduler=_SCHEDULER,
        text=script.text,
    )


def build_batch_script(name: str, arguments: Texts) -> AppDef:
    """Return the AppDef that submits a script; only what differs from its own lines becomes an option.

    Args:
        name: the script.
        arguments: texts by parameter.

    Raises:
        ArgumentError: an argument is unknown, missing, or no value of its option.
        TorchXTuiError: as for `read_script`.
    """
    script = read_script(name)
    parameters = parameters_by_name(name, _parameters(script), arguments)
    values = {key: checked_value(parameters[key], text) for key, text in arguments.items()}
    texts = {key: _option_text(OPTIONS[key], value) for key, value in values.items() if key in OPTIONS}
    changed = {key: text for key, text in texts.items() if text != script.options.get(key, "")}
    job_name = changed.get("job-name") or script.options.get("job-name") or script.path.name
    options = [text for key, value in changed.items() if (text := _option(key, value, script.options.get(key, "")))]
    if "job-name" not in {**script.options, **changed}:
        # sbatch reads the script from standard input, so it does not know its name.
        options.append(f"--job-name={job_name}")
    settings = {**script.options, **changed, "job-name": job_name}
    words = tuple(_script_arguments(script, values))
    made = BatchScript(script.text, tuple(options), words, settings, _environment(script, values))
    return AppDef(job_name, [made.role()])


def _parameters(script: SbatchScript) -> Iterator[Parameter]:
    """Yield the parameters: arguments with names, options of the script, those that every form shows, the rest."""
    for number, value in enumerate(script.positionals, 1):
        yield _value_parameter(value, "positional", f"The script's argument ${number}", value.default is None)
    for value in script.variables:
        is_missing = value.default is None and value.name not in os.environ
        yield _value_parameter(
            value, "keyword_only", f"The variable {value.name} of the script's environment", is_missing
        )
    if not script.is_het:
        for key, value in script.options.items():
            yield _option_parameter(OPTIONS.get(key, SbatchOption(key)), value)
        for option in OPTIONS.values():
            if option.help and option.name not in script.options:
                yield _option_parameter(option, None)
    words = "Further arguments of the script" if script.positionals else "The script's arguments"
    yield Parameter(REST, "var_positional", ValueType("str", "str"), (), words)


def _value_parameter(value: ScriptValue, kind: ParameterKind, words: str, is_missing: bool) -> Parameter:
    default = REQUIRED if is_missing else value.default or ""
    return Parameter(value.name, kind, ValueType("str", "str"), default, value.message or words)


def _option_parameter(option: SbatchOption, value: str | None) -> Parameter:
    kind, choices = "str", option.choices
    if option.kind == "flag":
        kind = "bool"
    elif option.kind == "int" and (value is None or value.isdecimal()):
        kind = "int"
    elif option.kind == "text?":
        choices = ("yes", *choices) if choices else ()
    if choices and value and value not in choices:
        # A newer sbatch may know more values.
        choices = ()
    return Parameter(
        option.name,
        "keyword_only",
        ValueType(kind, kind, optional=True, choices=(*choices, "") if choices else ()),
        value,
        option.help or "sbatch(1) explains it",
        option.kind if option.kind in ("time", "memory") else "",
    )


def _findings(script: SbatchScript) -> Iterator[LinterMessage]:
    if script.is_het:
        words = "a heterogeneous job: its options are those of the script, and cannot be changed here"
        yield LinterMessage("sbatch", words, 1, 0, "warning")
    unknown = [key for key in script.options if key not in OPTIONS]
    if unknown:
        yield LinterMessage("sbatch", f"options that sbatch may not know: {', '.join(unknown)}", 1, 0, "warning")


def _option_text(option: SbatchOption, value: Any) -> str:
    if option.kind == "flag" and option.name != "requeue":
        return "true" if value else ""
    return to_text(value).lower() if option.kind == "flag" else to_text(value)


def _option(key: str, value: str, before: str) -> str:
    """Return the option for the command line of sbatch.

    Raises:
        ArgumentError: no option undoes the one in the script.
    """
    option = OPTIONS[key]
    if key == "mail-type" and (kept := set(before.split(",")) - {"", *value.split(",")}):
        words = f"the script mails on {', '.join(sorted(kept))}, too, and sbatch only adds to that: edit the script"
        raise ArgumentError(key, words)
    if key == "requeue":
        return "--requeue" if value == "true" else "--no-requeue" if value else ""
    if option.kind == "flag" or (option.kind == "text?" and value == "yes"):
        if value in ("true", "yes"):
            return f"--{key}"
        raise ArgumentError(key, f"the script has --{key}, which no option of sbatch undoes: edit the script")
    if not value:
        raise ArgumentError(key, f"the script sets --{key}, and sbatch takes no empty value: edit the script")
    return f"--{key}={value}"


def _environment(script: SbatchScript, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables whose values differ from the script's defaults.

    Raises:
        ArgumentError: a variable without a default is neither given nor set here.
    """
    for variable in script.variables:
        if variable.default is None and not values.get(variable.name) and not os.environ.get(variable.name):
            raise ArgumentError(variable.name, f"{script.path.name} needs a value for {variable.name}")
    changed = [one.name for one in script.variables if values.get(one.name) not in (None, "", one.default)]
    return {name: str(values[name]) for name in changed}


def _script_arguments(script: SbatchScript, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments in order, with defaults for those that are missing.

    Raises:
        ArgumentError: an argument without a default is missing.
    """
    rest = [*values.get(REST, ())]
    given = [(positional, values.get(positional.name)) for positional in script.positionals]
    if not any(value is not None for _, value in given) and (rest or not given):
        # All arguments were given without names.
        return rest
    missing = [positional.name for positional, value in given if value in (None, "") and positional.default is None]
    if missing:
        raise ArgumentError(missing[0], f"{script.path.name} needs a value for {', '.join(missing)}")
    words = [to_text(positional.default if value is None else value) for positional, value in given]
    while words and not rest and words[-1] == (given[len(words) - 1][0].default or ""):
        words.pop()
    return [*words, *rest]
