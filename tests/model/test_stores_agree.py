"""Both stores do what the reference does, whatever they are asked and in whatever order.

The examples are the same each time; HOOKLINE_MODEL_EXAMPLES asks for more of them, HOOKLINE_FRESH for others.
"""

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine_operators import OperatedMachine

EXAMPLES = int(os.environ.get("HOOKLINE_MODEL_EXAMPLES", "30"))
STEPS = 50


def test_both_stores_answer_and_hold_what_the_reference_does(new_driver):
    machine = type("Machine", (OperatedMachine,), {"new_driver": staticmethod(new_driver)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize="HOOKLINE_FRESH" not in os.environ,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
