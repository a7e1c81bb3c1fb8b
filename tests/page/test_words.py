"""What the page says of a curve: to whom, the fall at no loss, the price of the next step; or that nothing is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenrank.experiment.curves import Curve
from evenrank.page.words import Rates, answer, next_step, story
from evenrank.wording import percent, short_title, with_error

NAN = math.nan
RATES = Rates(["men", "women"], np.array([0.5, 0.3]), np.array([0.8, 0.6]))


def curve(
    violation, quality, error=0.01, *, notion="demographic_parity", method="amortized", measure="ndcg@3"
) -> Curve:
    size = len(violation)
    return Curve(
        method,
        notion,
        measure,
        f"{notion}@3",
        np.arange(size) / 10,
        np.array(quality, float),
        np.full(size, error),
        np.array(violation, float),
        np.full(size, 0.01),
    )


def test_a_fall_at_no_loss_and_then_a_price():
    told = story(curve([0.2, 0.1, 0.05, 0.02], [0.9, 0.89, 0.8, 0.7]), RATES)
    assert told.answer == (
        'The demographic parity gap at 3, at the expense of "women", can fall by 50% (0.200 → 0.100) with no '
        "significant loss of NDCG@3 (0.900 → 0.890); beyond that, going down to 0.050 costs 0.100 of NDCG@3."
    )
    assert told.uneven == (
        "0.200 gap",
        '"women" is behind: 30.0% of its items reach the top 3, against 50.0% of those of "men". The lowest rate is '
        "0.60 of the highest, below the four-fifths mark.",
    )
    assert told.no_loss[0] == "−50% gap"
    assert "At strength 0.1 the gap is 0.100 instead of 0.200, and NDCG@3 falls by 0.010" in told.no_loss[1]
    assert told.further[0] == "−0.100 NDCG@3"
    assert "0.050 at strength 0.2, has NDCG@3 0.800 instead of 0.900: significantly lower." in told.further[1]


def test_nothing_further_down():
    told = story(curve([0.2, 0.1], [0.9, 0.91]), RATES)
    assert told.answer.endswith("no strength that was tried lowers it further.")
    assert "NDCG@3 does not fall" in told.no_loss[1]
    assert told.further == ("none found", "No strength tried makes the gap smaller still, at any price.")


def test_nothing_falls_at_no_loss():
    told = story(curve([0.2, 0.1], [0.9, 0.7]), RATES)
    priced = "none of the strengths tried lowers it without a significant loss: going down to 0.100 costs 0.200"
    assert priced in told.answer
    assert told.no_loss == ("nothing", "Every strength that lowers the gap also lowers NDCG@3 by more than its error.")
    assert told.further[0] == "−0.200 NDCG@3"


def test_nothing_at_any_price():
    told = story(curve([0.2, 0.3], [0.9, 0.9]), RATES)
    assert told.answer.endswith("without a significant loss, nor with one.")
    assert told.no_loss == ("nothing", "No strength tried lowers the gap.")


@pytest.mark.parametrize("gap", [0.0, 6e-15])  # the second is what rounding leaves if every item is selected
def test_no_gap_to_lower(gap):
    told = story(curve([gap, 0.1], [0.9, 0.9]), RATES)
    assert told.answer == "The demographic parity gap at 3 is 0: there is nothing to mitigate."
    assert told.no_loss == ("–", "There is no gap to lower.")


@pytest.mark.parametrize("made", [curve([NAN, NAN], [0.9, 0.9]), curve([0.1, 0.1], [NAN, NAN])])
def test_what_is_not_defined_is_said_to_be_so(made):
    told = story(made, RATES)
    assert "is not defined" in told.answer
    assert not any("nan" in part for part in (told.answer, *told.uneven, *told.no_loss, *told.further))


def test_equal_opportunity_is_about_relevant_items():
    rates = Rates(["men", "women"], np.array([0.3, 0.5]), np.array([0.8, 0.6]))
    told = story(curve([0.2, 0.1], [0.9, 0.9], notion="equal_opportunity"), rates)
    assert 'at the expense of "women"' in told.answer
    assert (
        '"women" is behind: 60.0% of its relevant items reach the top 3, against 80.0% of those of "men".'
        in told.uneven[1]
    )
    assert "Counting all items, the lowest rate is 0.60 of the highest" in told.uneven[1]


def test_all_items_stand_in_where_relevant_ones_were_not_counted():
    rates = Rates(["men", "women"], np.array([0.5, 0.45]), np.full(2, NAN))
    told = story(curve([0.2, 0.1], [0.9, 0.9], notion="equal_opportunity"), rates)
    assert told.uneven[1].startswith('"women" is behind: 45.0% of its items')
    assert "The lowest rate is 0.90 of the highest, above the four-fifths mark." in told.uneven[1]


def test_nobody_is_named_where_rates_are_equal():
    told = story(curve([0.2, 0.1], [0.9, 0.9]), Rates(["men", "women"], np.array([0.5, 0.5]), np.full(2, NAN)))
    assert "expense" not in told.answer
    assert "50.0% of the items of every group reach the top 3" in told.uneven[1]


def test_of_several_groups_the_last_is_mostly_behind():
    rates = Rates(["a", "b", "c"], np.array([0.5, 0.2, 0.4]), np.full(3, NAN))
    assert ', mostly at the expense of "b",' in story(curve([0.2, 0.1], [0.9, 0.9]), rates).answer


def test_methods_are_named_where_there_are_several():
    mine, other = curve([0.2, 0.1], [0.9, 0.9]), curve([0.2, 0.01], [0.9, 0.5], method="per_query")
    told = story(mine, RATES, others=[other])
    assert told.answer.startswith("With the amortized method, the demographic parity gap")
    assert told.further[1].endswith("Another method, per query, gets as low as 0.010, with NDCG@3 0.500.")
    assert "Another method" not in story(other, RATES, others=[mine]).further[1]


def test_the_next_step_is_the_cheapest_that_is_worse_and_more_even():
    assert next_step(curve([0.2, 0.1, 0.02, 0.05, 0.15], [0.9, 0.89, 0.6, 0.7, 0.3])) == 3
    assert next_step(curve([0.2, 0.1, 0.15], [0.9, 0.89, 0.5])) is None


def test_a_loss_whose_error_is_not_known_is_not_called_significant():
    for one in (curve([0.2, 0.1], [0.9, 0.8], NAN), curve([0.2, 0.1, 0.05], [0.9, 0.9, 0.8], NAN)):
        told = story(one, RATES)
        for text in (told.answer, *told.no_loss, *told.further, answer(one)):
            assert "significant" not in text
            assert "error" not in text
        assert "0.800 instead of 0.900." in told.further[1]


def test_one_sentence_of_a_curve():
    lowered = answer(curve([0.2, 0.1], [0.9, 0.9], measure="ndcg@3"))
    assert lowered == (
        "Demographic parity: the gap at 3 can fall by 50% (0.200 → 0.100) with no significant loss of NDCG@3 "
        "(0.900 → 0.900), at strength 0.1."
    )
    assert answer(curve([0.2, 0.3], [0.9, 0.9])).endswith("no strength lowers it without a significant loss.")
    assert "is not defined" in answer(curve([NAN], [0.9]))
    assert answer(curve([0.0, 0.1], [0.9, 0.9])).endswith("the gap at 3 is 0; there is nothing to mitigate.")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (with_error(0.12345, 0.01), "0.123 ± 0.010"),
        (with_error(0.5, NAN), "0.500"),
        (with_error(NAN, NAN), "–"),
        (percent(0.256), "26%"),
        (percent(-0.001), "0%"),
        (percent(-0.001, "+"), "+0%"),
        (percent(-0.25, "+"), "-25%"),
        (percent(NAN), "–"),
        (short_title("precision", 10), "P@10"),
    ],
)
def test_numbers_as_written(shown, expected):
    assert shown == expected
