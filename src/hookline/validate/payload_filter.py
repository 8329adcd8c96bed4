"""Decides from an event's payload whether an endpoint wants it.

A filter is a JMESPath expression. The event passes when the result is true in JMESPath's sense (everything except null,
false and empty texts, lists and objects). The cost of a filter is bounded: expressions are short, build no values, and
take a limited number of steps. If an expression cannot be evaluated on a payload, the event passes: an event too many
is noticed, one too few is not.

Imported only where there is a filter.
"""

import threading
import warnings
from typing import Any

from jmespath.exceptions import JMESPathError, LexerError, ParseError
from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from hookline.errors import Invalid
from hookline.validate.names import did_you_mean

MAX_LENGTH = 1_000
MAX_DEPTH = 100  # of expressions within expressions
STEPS = 50_000  # for all filters on one event; a step takes 1 to 2 µs
SOON = 700  # steps that are taken at once

# Functions that only look. One that builds a value can double it, and an expression can call it a hundred times.
FUNCTIONS = (
    *("abs", "avg", "ceil", "contains", "ends_with", "floor", "keys", "length", "max", "max_by", "min"),
    *("min_by", "not_null", "starts_with", "sum", "to_number", "type", "values"),
)
_BUILDING = {"multi_select_list": "[a, b]", "multi_select_dict": "{a: b}"}
_ITEMS_A_STEP = 16  # of a list that is iterated
_BYTES_A_STEP = 64  # of a payload that is compared as a whole


class _TooManySteps(Exception):
    """The filters of an event took more steps than allowed."""


class _NotSoon(Exception):
    """A filter takes more steps than may be taken at once."""


class Budget:
    """The steps that the filters of one event may still take."""

    __slots__ = ("at_once", "left", "on_pause", "whole")

    def __init__(self, payload_bytes: int, steps: int = STEPS) -> None:
        self.left = steps
        self.at_once = steps  # before the filter pauses
        self.on_pause = _not_soon
        self.whole = 1 + payload_bytes // _BYTES_A_STEP  # for comparing values of any size

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _TooManySteps
        self.at_once -= steps
        if self.at_once < 0:
            self.on_pause()


def _not_soon() -> None:
    raise _NotSoon


class Filter:
    """A compiled expression that is tried on payloads."""

    __slots__ = ("_tree", "expression")

    def __init__(self, expression: str) -> None:
        """`expression` was checked before."""
        self.expression = expression
        self._tree = Parser().parse(expression).parsed

    def passes(self, payload: Any, budget: Budget) -> bool:
        """Whether the endpoint wants it; True too when the expression cannot be evaluated on this payload."""
        try:
            return is_true(_Bounded(budget).visit(self._tree, payload))
        except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError, _TooManySteps):
            return True

    def passes_soon(self, payload: Any, budget: Budget) -> bool | None:
        """The same; None: it takes more steps than may be taken at once, and none of them counts yet."""
        before = budget.left
        budget.at_once = SOON
        try:
            return self.passes(payload, budget)
        except _NotSoon:
            budget.left = before
            return None

    def trial(self, payload: Any, budget: Budget) -> "FilterRun":
        """The same, in parts."""
        return FilterRun(self, payload, budget)


class FilterRun:
    """A filter that is evaluated in parts.

    It runs on a thread, because there is no other way to stop in the middle of an expression. The thread works only
    while the loop waits for it. If both ran, the loop would wait up to 5 ms for the interpreter at everything it does.
    """

    __slots__ = (
        "_budget",
        "_error",
        "_filter",
        "_go",
        "_is_closed",
        "_passes",
        "_paused",
        "_payload",
        "_thread",
    )

    def __init__(self, filter: Filter, payload: Any, budget: Budget) -> None:
        self._filter = filter
        self._payload = payload
        self._budget = budget
        self._go = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        self._passes: bool | None = None
        self._error: Exception | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="hookline-filter", daemon=True)
        budget.on_pause = self._pause

    def go_on(self) -> bool | None:
        """Run the next part; the result, or None: it is not finished."""
        self._budget.at_once = SOON
        if self._thread.ident is None:
            self._thread.start()
        self._go.release()
        self._paused.acquire()
        if self._error is not None:
            raise self._error
        return self._passes

    def close(self) -> None:
        """End it, wherever it is."""
        self._budget.on_pause = _not_soon
        if self._thread.is_alive():
            self._is_closed = True
            self._go.release()
            self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._is_closed:
                self._passes = self._filter.passes(self._payload, self._budget)
        except _NotSoon:
            pass  # closed
        except Exception as error:
            self._error = error
        self._paused.release()

    def _pause(self) -> None:
        self._paused.release()
        self._go.acquire()
        if self._is_closed:
            raise _NotSoon


def is_true(value: Any) -> bool:
    """Whether a value is true in JMESPath's sense: zero is true."""
    return not (value is None or value is False or value == "" or value == [] or value == {})


class _Bounded(TreeInterpreter):
    """JMESPath that counts its steps."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        result = super().visit(node, *args, **kwargs)
        self._budget.take(1 + (len(result) // _ITEMS_A_STEP if type(result) is list else 0))
        return result

    def visit_comparator(self, node: Any, value: Any) -> Any:
        self._charge_for_containers(node["children"], value)
        return super().visit_comparator(node, value)

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        if node["value"] == "contains":
            self._charge_for_containers(node["children"][1:], value)
        return super().visit_function_expression(node, value)

    def _charge_for_containers(self, operands: Any, value: Any) -> None:
        """Charge for comparing lists and objects, which are compared to any depth."""
        if all(isinstance(self.visit(operand, value), list | dict) for operand in operands):
            self._budget.take(self._budget.whole)


def checked(value: Any, *, pointer: str = "/filter") -> str:
    """The expression if it is valid; else `Invalid` with the position of the fault."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid("A filter is a JMESPath expression, such as \"status == 'paid'\".", pointer=pointer)
    if len(value) > MAX_LENGTH:
        raise Invalid(f"A filter has at most {MAX_LENGTH:,} characters.", pointer=pointer)
    try:
        value.encode()
        if "\0" in value:
            raise ValueError
        with warnings.catch_warnings():
            warnings.simplefilter("error", PendingDeprecationWarning)
            tree = Parser().parse(value).parsed
    except PendingDeprecationWarning:
        raise Invalid(
            "Backticks contain JSON: write a string as 'paid' or `\"paid\"`.", pointer=pointer
        ) from None
    except LexerError as error:
        raise _not_jmespath(error.message, error.lexer_position, pointer) from None
    except ParseError as error:
        raise _not_jmespath(_cause(error), getattr(error, "lex_position", None), pointer) from None
    except JMESPathError as error:
        raise _not_jmespath(str(error), None, pointer) from None
    except ValueError:
        raise Invalid(
            "A filter is a JMESPath expression without NUL and lone surrogates.", pointer=pointer
        ) from None
    except RecursionError:
        raise Invalid("The filter is nested too deeply.", pointer=pointer) from None
    _check(tree, pointer=pointer, room=MAX_DEPTH)
    return value


def _check(node: Any, *, pointer: str, room: int) -> None:
    if not room:
        raise Invalid(f"A filter may be nested at most {MAX_DEPTH} levels deep.", pointer=pointer)
    kind = node["type"]
    if kind in _BUILDING:
        raise Invalid(
            f"A filter says yes or no: it cannot build values with {_BUILDING[kind]}. "
            'A list to compare with is written as `["a", "b"]`, with backticks.',
            pointer=pointer,
        )
    if kind == "function_expression":
        _check_call(node["value"], len(node["children"]), pointer=pointer)
    for child in node["children"]:
        if isinstance(child, dict):  # the children of a slice are numbers
            _check(child, pointer=pointer, room=room - 1)


def _check_call(name: str, given: int, *, pointer: str) -> None:
    if name not in FUNCTIONS:
        raise Invalid(
            f"A filter has no function {name[:100]}().{did_you_mean(name, FUNCTIONS)} "
            f"There are {', '.join(FUNCTIONS)}.",
            pointer=pointer,
        )
    signature = Functions.FUNCTION_TABLE[name]["signature"]
    is_open = bool(signature) and bool(signature[-1].get("variadic"))
    if given < len(signature) or (given > len(signature) and not is_open):
        least = "at least " if is_open else ""
        raise Invalid(f"{name}() takes {least}{len(signature)} arguments, not {given}.", pointer=pointer)


def _not_jmespath(cause: str, position: int | None, pointer: str) -> Invalid:
    where = "" if position is None else f", at character {position + 1}"
    return Invalid(f"The filter is not a JMESPath expression{where}: {cause[:200]}.", pointer=pointer)


def _cause(error: ParseError) -> str:
    token = getattr(error, "token_value", None)
    return "it ends too early" if token in (None, "") else f"unexpected {str(token)[:50]!r}"
