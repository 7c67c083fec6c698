"""The package by its answers: closed forms, intervals that hold them, and mistakes that are told. ``python -m unittest``"""

import ast
import contextlib
import inspect
import io
import math
import runpy
import tempfile
import unittest
from pathlib import Path

import numpy as np

import bodkin_petri as bp

ROOT = Path(__file__).resolve().parents[2]


def queue(room: int) -> bp.Net:
    """M/M/1/room: arrivals at rate 1, served at rate 2."""
    net = bp.Net("queue", time_unit="s").place("room", room).place("waiting")
    net.timed("arrive", bp.exponential(1.0), ["room"], ["waiting"])
    return net.timed("serve", bp.exponential(2.0), ["waiting"], ["room"])


class Solving(unittest.TestCase):
    def test_the_long_run_of_a_queue_is_its_closed_form(self):
        solution = queue(4).solve(steady=True, measures=["throughput(serve)", "waiting == 0"])
        weights = [0.5**n for n in range(5)]
        mean = sum(n * weight for n, weight in enumerate(weights)) / sum(weights)
        self.assertAlmostEqual(solution.of("waiting")[0], mean, delta=1e-9)
        self.assertAlmostEqual(solution.of("waiting == 0")[0], 1 / sum(weights), delta=1e-9)
        self.assertAlmostEqual(solution.of("throughput(serve)")[0], 2 * (1 - 1 / sum(weights)), delta=1e-9)
        self.assertTrue(solution.is_bound)
        self.assertEqual(solution.values.shape, (1, 4))

    def test_curves_have_a_row_for_each_time(self):
        net = bp.Net("decay").place("A", 1).place("B").timed("t", bp.exponential(0.5), ["A"], ["B"])
        times = np.linspace(0, 5, 11)
        solution = net.solve(times)
        np.testing.assert_allclose(solution.of("A"), np.exp(-0.5 * times), atol=1e-9)
        self.assertIn("<svg", solution.plot(["A", "B"], "Decay", "s"))

    def test_a_net_is_read_and_written(self):
        text = (ROOT / "vectors/petri/nets/event_handler_k1.json").read_text()
        net = bp.Net.from_json(text)
        self.assertEqual(net.places[0], "Publisher")
        again = bp.Net.from_json(net.to_json())
        np.testing.assert_array_equal(net.solve([5.0]).values, again.solve([5.0]).values)
        self.assertIn("<svg", net.svg())

    def test_mistakes_are_told_with_their_place(self):
        net = bp.Net("wrong").place("A", 1).timed("t", bp.exponential(1.0), ["A"], ["B"])
        with self.assertRaisesRegex(ValueError, "transition t, output 1: B is no place of the net"):
            net.solve([1.0])
        with self.assertRaisesRegex(ValueError, "rate"):
            bp.Net("wrong").place("A", 1).timed("t", bp.exponential(-1.0), ["A"]).solve([1.0])
        with self.assertRaises(ValueError):
            queue(1).solve()
        with self.assertRaisesRegex(ValueError, "no method"):
            queue(1).solve([1.0], method="guess")


class Asking(unittest.TestCase):
    """First passages, response times, sweeps, and other forms of nets."""

    def test_a_first_passage_has_its_quantiles_and_its_mean(self):
        net = bp.Net("decay").place("A", 1).place("B").timed("t", bp.exponential(0.5), ["A"], ["B"])
        found = net.passage("B == 1", [0.5, 0.99])
        for share, low, high in zip(found.shares, found.low, found.high):
            self.assertLessEqual(low, -2 * math.log(1 - share) + 1e-9)
            self.assertGreaterEqual(high, -2 * math.log(1 - share) - 1e-9)
        self.assertAlmostEqual(found.mean, 2.0, delta=1e-6)
        self.assertTrue(found.is_bound)
        with self.assertRaisesRegex(ValueError, "expected a condition"):
            net.passage("A")

    def test_a_token_waits_as_in_m_m_1(self):
        net = bp.Net("queue").place("room", 60).place("waiting").place("served")
        net.timed("arrive", bp.exponential(1.0), ["room"], ["waiting"]).timed("serve", bp.exponential(2.0), ["waiting"], ["served"])
        net.timed("leave", bp.exponential(1000.0), ["served"], ["room"])
        times = np.linspace(0, 5, 6)
        found = net.response("waiting", "served", times, shares=[0.99])
        np.testing.assert_allclose(found.values, 1 - np.exp(-times), atol=1e-6)
        self.assertAlmostEqual(found.high[0], math.log(100), delta=1e-5)
        self.assertAlmostEqual(found.mean, 1.0, delta=1e-6)
        self.assertLess(found.error, 1e-9)
        self.assertIn("<svg", found.plot())
        with self.assertRaisesRegex(ValueError, "nowhere is no place"):
            net.response("waiting", "nowhere", times)

    def test_a_sweep_has_the_closed_form_at_every_point(self):
        net = bp.Net("queue", parameters={"load": 0.5, "room": 2}).place("Room", "=room").place("Queue")
        net.timed("arrive", "load", ["Room"], ["Queue"]).timed("serve", bp.exponential(1.0), ["Queue"], ["Room"])
        found = net.sweep({"load": [0.25, 0.5, -1], "room": [1, 3]}, steady=True, measures=["Room == 0"])
        for point, full, error, refused in zip(found.points, found.of("Room == 0"), found.errors, found.refused):
            if point["load"] < 0:
                self.assertIn("expected a number above 0", refused)
                self.assertTrue(math.isnan(full))
                continue
            load, room = point["load"], int(point["room"])
            self.assertAlmostEqual(full, load**room / sum(load**n for n in range(room + 1)), delta=1e-6)
        self.assertEqual(found.methods, ("markov",) * 4 + (None,) * 2)
        self.assertEqual(found.are_bounds[:4], (True,) * 4)
        self.assertIn("<svg", net.sweep({"load": [0.2, 0.6]}, 3.0).plot(["Queue"]))
        with self.assertRaisesRegex(ValueError, "one parameter, and there are 2"):
            found.plot(["Queue"])
        self.assertEqual(net.with_parameters(room=7).solve([0.0]).of("Room")[0], 7)

    def test_nets_come_and_go_as_pnml_and_come_from_oris(self):
        net = queue(3)
        again = bp.Net.from_pnml(net.to_pnml())
        np.testing.assert_array_equal(net.solve([1.0]).values, again.solve([1.0]).values)
        coloured = '<pnml><net id="n" type="http://www.pnml.org/version-2009/grammar/symmetricnet"/></pnml>'
        with self.assertRaisesRegex(ValueError, "expected a place/transition net"):
            bp.Net.from_pnml(coloured)
        oris = bp.Net.read(ROOT / "vectors/petri/oris/event_handler_k1.xpn")
        own = bp.Net.read(ROOT / "vectors/petri/nets/event_handler_k1.json")
        np.testing.assert_array_equal(oris.solve([8.0]).values, own.solve([8.0]).values)

    def test_firings_earn_what_their_marking_says(self):
        net = bp.Net("deaths").place("A", 5).timed("die", bp.exponential(3.0), ["A"], servers="infinite")
        found = net.solve([40.0], measures=["firings(die, A)"], error=1e-6)
        self.assertAlmostEqual(found.of("firings(die, A)")[0], 15.0, delta=1e-6)


class Simulating(unittest.TestCase):
    def test_intervals_hold_the_exact_value_and_a_seed_repeats(self):
        times = np.array([0.5, 1.0, 2.0])
        exact = queue(3).solve(times)
        found = queue(3).simulate(times, runs=20_000, seed=7)
        self.assertEqual(found.values.shape, (3, 2))
        self.assertTrue(np.all(found.low <= exact.values) and np.all(exact.values <= found.high))
        np.testing.assert_array_equal(found.values, queue(3).simulate(times, runs=20_000, seed=7, threads=1).values)
        self.assertIn("<svg", found.plot(["waiting"]))

    def test_firings_are_counted(self):
        net = bp.Net("clock").place("A").timed("tick", bp.deterministic(1.0), outputs=["A"])
        found = net.simulate([0.5, 3.5], measures=["firings(tick)"], runs=100)
        np.testing.assert_array_equal(found.of("firings(tick)"), [0.0, 3.0])
        self.assertEqual(found.values.shape, (2, 2))


class Fitting(unittest.TestCase):
    def test_the_law_that_made_the_times_is_found(self):
        shares = (np.arange(400) + 0.5) / 400
        best = bp.fit(-np.log(1 - shares) * 3.0, ["exponential", "uniform"], resamples=99)[0]
        self.assertEqual(best.family, "exponential")
        self.assertTrue(math.isclose(best.mean, 3.0, rel_tol=0.01))
        self.assertTrue(best.fits())
        net = bp.Net("fitted").place("A", 1).timed("t", best.law, ["A"])
        self.assertAlmostEqual(net.solve([3.0]).of("A")[0], math.exp(-3.0 / best.mean), delta=1e-9)
        low, high = best.intervals["rate"]
        self.assertTrue(low < best.parameters["rate"] < high)
        self.assertEqual(best.covariances.shape, (1, 1))
        self.assertGreater(best.covariances[0, 0], 0)
        drawn = [best.plot(kind) for kind in ("density", "cdf", "qq")]
        self.assertTrue(all("<svg" in text and "exponential" in text for text in drawn))
        self.assertEqual(len(set(drawn)), 3)
        with self.assertRaisesRegex(ValueError, "expected density, cdf or qq"):
            best.plot("pie")
        with self.assertRaisesRegex(ValueError, "no family"):
            bp.fit([1.0, 2.0, 3.0], ["unheard-of"])


class Stubs(unittest.TestCase):
    def test_stubs_have_every_function_with_its_parameters(self):
        stub = ast.parse((Path(bp.__file__).parent / "_engine.pyi").read_text())
        told = {part.name: [parameter.arg for parameter in part.args.args] for part in stub.body if isinstance(part, ast.FunctionDef)}
        functions = {name: function for name, function in vars(bp._engine).items() if inspect.isbuiltin(function)}
        self.assertIn("solve", functions)
        self.assertEqual(told, {name: list(inspect.signature(function).parameters) for name, function in functions.items()})

    def test_whatever_is_given_away_says_what_it_is(self):
        for name in bp.__all__:
            self.assertTrue(inspect.getdoc(getattr(bp, name)), name)


class Examples(unittest.TestCase):
    def test_the_thesis_is_repeated(self):
        main = runpy.run_path(str(ROOT / "python/examples/chapter8.py"))
        net = main["event_handler"](1)
        printed = bp.Net.read(ROOT / "vectors/petri/nets/event_handler_k1.json")
        times = np.linspace(0, 20, 21)
        np.testing.assert_allclose(net.solve(times).values, printed.solve(times).values, atol=1e-9)
        with tempfile.TemporaryDirectory() as directory:
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                main["main"](Path(directory))
            self.assertIn("mean 8.962 ms", told.getvalue())
            self.assertIn("4 messages one by one: lattice", told.getvalue())
            self.assertIn("4 messages in flight at once: lattice", told.getvalue())
            self.assertEqual(len(list(Path(directory).iterdir())), 4)
        printed = bp.Net.read(ROOT / "vectors/petri/nets/event_handler_k4_p4_c4_is.json")
        four = main["event_handler"](4, servers="infinite")
        np.testing.assert_allclose(four.solve([8.0], error=1e-3).values, printed.solve([8.0], error=1e-3).values, atol=2e-3)


if __name__ == "__main__":
    unittest.main()
