"""Where torchx-tui does not do what TorchX does, and why: everything else that is compared is equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["upstream fault", "addition", "generation"]


@dataclass(frozen=True)
class Difference:
    """One deliberate difference.

    Args:
        area: What was compared.
        name: What tells the difference from others of its area.
        theirs: What TorchX does.
        ours: What is done here.
        why: Why that is better.
        kind: `upstream fault`, where TorchX goes wrong; `addition`, where it refuses what has a meaning here;
            `generation`, where its releases differ among themselves.
    """

    area: str
    name: str
    theirs: str
    ours: str
    why: str
    kind: Kind


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "runopts",
        "spellings",
        "an option that was declared in camelCase or capitals has that one spelling",
        "it may be given in snake_case too",
        "the option is the same whichever way round it was declared",
        "addition",
    ),
    Difference(
        "runopts",
        "a list for a dict",
        "a list is taken for a value of `dict[str, str]`, and a dict for one of `list[str]`",
        "`InvalidRunConfigException`; a `TypeError` when it is declared as default",
        "the scheduler would fail on it later",
        "upstream fault",
    ),
    Difference(
        "runopts",
        "a missing key or value",
        "`s=1,u=` is `{'s': '1,u'}`, and `s==1` is `{'s': '1'}`",
        "`InvalidRunConfigException`",
        "what is missing would become part of another value, or be passed over",
        "upstream fault",
    ),
    Difference(
        "runopts",
        "a pair without a colon",
        "an `IndexError` for a dict's item without `:`, an empty one after a trailing comma too",
        "`InvalidRunConfigException` that names the item; empty items are passed over",
        "the message says what to write",
        "upstream fault",
    ),
    Difference(
        "runopts",
        "quotes",
        "a backslash before a quote stays in the value; items of a list and a dict are parted inside quotes",
        "the backslash keeps the quote inside and goes; quotes keep an item of a list or a dict together",
        "any value can be written down and read back",
        "upstream fault",
    ),
    Difference(
        "runopts",
        "JSON of another form",
        "the text `ab` for a list is `['a', 'b']`; a number for a list, or a list for the whole, is a `TypeError` or "
        "an `AttributeError`",
        "`InvalidRunConfigException`",
        "the value is not of the option's type",
        "upstream fault",
    ),
    Difference(
        "runopts",
        "types of the module typing",
        "the help says `typing.List[str]` of `typing.List[str]` and `list` of `list[str]`",
        "`list` of both",
        "they are one type",
        "generation",
    ),
    Difference(
        "macros",
        "the entrypoint",
        "macros in a role's entrypoint stay as they are",
        "they are replaced",
        "a program inside the image's folder can be named",
        "addition",
    ),
    Difference(
        "macros",
        "lists in lists",
        "in metadata, a list inside of a list and a tuple stay as they are",
        "they are replaced at any depth",
        "metadata of a scheduler, such as a pod, nests",
        "addition",
    ),
    Difference(
        "macros",
        "base_img_root",
        "`${base_img_root}` stays as it is",
        "it is `DEPRECATED`, or what `Values` was made with",
        "the documented releases have it",
        "generation",
    ),
    Difference(
        "mounts",
        "read_only=false",
        "`readonly=false` is read-only",
        "it is not; another word than a truth value's is a `MountError`",
        "the text says so",
        "upstream fault",
    ),
    Difference(
        "mounts",
        "an empty value",
        "`src=` and `src` are the path that is empty",
        "`MountError`",
        "no scheduler can mount it",
        "upstream fault",
    ),
    Difference(
        "mounts",
        "given twice",
        "of `src=a,src=b` the last one holds",
        "`MountError`",
        "a `type=` was forgotten between them",
        "upstream fault",
    ),
    Difference(
        "mounts",
        "an option of another kind",
        "`perm=` of a bind mount and `readonly` of a device are passed over",
        "`MountError` that lists the kind's options",
        "what was asked for would not happen",
        "upstream fault",
    ),
    Difference(
        "mounts",
        "spaces",
        "a space before or after an option belongs to it, so that ` src` is unknown",
        "it is passed over",
        "mounts are written as `type=bind, src=...`",
        "addition",
    ),
    Difference(
        "mounts",
        "an unknown home",
        "`~nobody/x` stays as it is where there is no such user",
        "`MountError`",
        "no scheduler can mount it",
        "upstream fault",
    ),
    Difference(
        "handles",
        "line breaks",
        "what follows a line break in a handle is passed over",
        "`MalformedAppHandleException`",
        "two lines are not one handle",
        "upstream fault",
    ),
    Difference(
        "named resources",
        "a zero",
        "`resource(cpu=0)` has 2 CPUs, `resource(memMB=0)` 1024 MB",
        "it has what was asked for",
        "no number and 0 are not the same",
        "upstream fault",
    ),
    Difference(
        "named resources",
        "no name",
        "`get_named_resources('')` is the resource of two CPUs",
        "`UnknownResourceError`, a `KeyError`",
        "nothing has that name",
        "upstream fault",
    ),
    Difference(
        "app status",
        "replicas in repr",
        "`repr()` writes a replica's state as a Python object, which no YAML reader takes",
        "the state's name and number, as the app's own",
        "`yaml.safe_load` reads it",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "a command line that is refused",
        "the process ends (`SystemExit`) where an argument is unknown, missing or no number",
        "`ArgumentError`, a `ValueError`, that names the argument",
        "a program can go on",
        "addition",
    ),
    Difference(
        "component arguments",
        "truth values",
        "any word but `true` is False, so that `yes`, `1` and `on` are",
        "`yes`, `1` and `on` are True, another word than a truth value's is an `ArgumentError`",
        "a mistyped word would switch off what was to be switched on",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "optional numbers",
        "the text `3` for `Optional[int]` or `int | None` stays a text",
        "it is the number",
        "the component says what it takes",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "empty lists and dicts",
        "an empty text is None, where None is no value of the type, too",
        "an empty list or dict; None where the type has it",
        "the component says what it takes",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "lists of truth values",
        "`ValueError` for `list[bool]`",
        "`true,no` is `[True, False]`",
        "it is read as one truth value is",
        "addition",
    ),
    Difference(
        "component arguments",
        "truth values in a dict",
        "every word for a `dict[str, bool]` is True, `false` too",
        "the word's value",
        "it is read as one truth value is",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "tuples",
        "`ValueError` for `tuple[int, str]`, which the linter accepts",
        "`1,a` is `(1, 'a')`",
        "what the linter accepts can be launched",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "a missing key or value",
        "`a=1,b=` for a dict is `{'a': '1,b'}`",
        "`ArgumentError`",
        "what is missing would become part of another value",
        "upstream fault",
    ),
    Difference(
        "component arguments",
        "given twice",
        "of an argument that is given twice the last one holds",
        "`ArgumentError`",
        "TorchX's own command line refuses it as well",
        "generation",
    ),
    Difference(
        "builtin components",
        "programs that travel",
        "`utils.copy` and `utils.booth` run `python -m torchx.apps...`",
        "`python3 -c` and the program's text",
        "the job's image needs no TorchX",
        "addition",
    ),
    Difference(
        "builtin components",
        "errors",
        "`KeyError` for an unknown host, an incomplete mount or an unknown option of one",
        "`ArgumentError` that names the argument",
        "the person sees which field to correct",
        "addition",
    ),
    Difference(
        "builtin components",
        "no nodes",
        "`j` may be `0x2` or `2:1x2`",
        "`ArgumentError`",
        "nothing would run, or torchrun would refuse it",
        "upstream fault",
    ),
    Difference(
        "builtin components",
        "an elastic spmd",
        "`ValueError` for `1:2x4`",
        "an elastic job, as of `dist.torchrun`",
        "it is the same argument",
        "addition",
    ),
    Difference(
        "builtin components",
        "a zero",
        "`cpu=0` is 2 CPUs, `memMB=0` is 1024 MB",
        "they are what was asked for",
        "as for `resource`",
        "upstream fault",
    ),
)
