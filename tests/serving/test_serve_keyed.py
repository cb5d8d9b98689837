"""A fleet behind HTTP: as the library's, each request repeatable, also after kills; hostile keys begin nothing."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import threading
import time
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from serve_cases import CLASSES, begun_by, conformal, forecaster, process

import venn
from venn.cli.commands import main
from venn.cli.fleets import shown
from venn.online.journal import JournalError
from venn.prediction import plain
from venn.scale.fleet_store import FILE, read_log, read_rows
from venn.serving.keyed import FleetOwner, KeyedRequest, ServedFleet
from venn.serving.messages import PlainReaders
from venn.serving.owner import ANSWER, ASK, LOOK
from venn.show.server import serving

SHOPS = ["Oslo", "Riga/Sud <b>", "ä b"]


def made(folder, model=conformal):
    owner = FleetOwner(lambda: venn.Fleet(lambda key: model(), folder, open=2, rate=0.5, every=5), "shop")
    return ServedFleet(owner, PlainReaders(), lambda: shown(str(folder)), lambda key: read_log(folder, key))


@contextlib.contextmanager
def served(folder, model=conformal):
    """Give a client of a served fleet, and the app; at the end all is closed."""
    with (
        made(folder, model) as app,
        serving(app.routes, "127.0.0.1", 0) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        yield client, app


def ask(client, shop, id, x=(0.5, 1.0)):
    return client.post("/ask", json={"shop": shop, "id": id, "x": list(x)})


def answer(client, shop, id, y="yes"):
    return client.post("/answer", json={"shop": shop, "id": id, "y": y})


def known(folder):
    """Return what is known of each key, but times."""
    return [row[:-1] for row in read_rows(folder)]


@pytest.mark.parametrize("model", [conformal, forecaster])
def test_it_says_what_the_library_says_and_the_same_again_after_a_restart(model, tmp_path):
    rng, told, named = np.random.default_rng(0), {}, []
    fleet = venn.Fleet(lambda key: model(), tmp_path / "library", rate=0.5)
    for life in range(2):
        with served(tmp_path / "served", model) as (client, _):
            for number in range(90 if model is conformal else 20):
                for shop in SHOPS:
                    if life == 0:
                        x = rng.integers(-2, 3, size=2).tolist()
                        y = CLASSES[int((x[0] > 0) ^ (shop == "ä b" and number >= 45))]
                        expected = fleet.ask(shop, x, number)
                        named += (changed := fleet.answer(shop, number, y))
                    else:
                        x, y = told[shop, number][:2]
                    said, learned = ask(client, shop, number, x), answer(client, shop, number, y)
                    assert {said.status_code, learned.status_code} == {200}, learned.text
                    if life == 0:
                        each = expected if isinstance(expected, dict) else {type(expected).__name__: expected}
                        shows = {name: json.loads(json.dumps(plain(one))) for name, one in each.items()}
                        assert said.json() == {"id": number, "shop": shop, "predictions": shows}
                        assert learned.json() == {
                            "id": number, "shop": shop, "named": [one._asdict() for one in changed]
                        }  # fmt: skip
                    same = told.setdefault((shop, number), (x, y, said.content, learned.content))
                    assert same == (x, y, said.content, learned.content)
        assert known(tmp_path / "served") == known(tmp_path / "library")
    if model is conformal:
        assert [one.key for one in named] == ["ä b"]


def test_every_refusal_has_its_status_and_changes_nothing(tmp_path):
    with served(tmp_path) as (client, app):
        for number in range(3):
            ask(client, "Oslo", number)
        answer(client, "Oslo", 1)
        ask(client, "Oslo", "given up")
    with venn.Fleet(lambda key: conformal(), tmp_path) as fleet:
        fleet.expire("Oslo", "given up")
    with served(tmp_path) as (client, app):
        before = known(tmp_path)
        for got, status, at in (
            (ask(client, "Oslo", 0, (9.0, 9.0)), 409, "x"), (answer(client, "Oslo", 1, "no"), 409, "y"),
            (answer(client, "Oslo", "never"), 404, "id"), (answer(client, "Riga", 0), 404, "id"),
            (answer(client, "Oslo", "given up"), 410, "id"), (answer(client, "Oslo", 2, "perhaps"), 422, "y"),
            (ask(client, "Oslo", "new", (1.0,)), 422, "x"), (ask(client, "Bonn", "new", ("a", 1.0)), 422, None),
            (client.post("/ask", json={"shop": "Bonn", "id": 1, "x": [1, [2]]}), 422, "x[1]"),
            (client.post("/ask", json={"id": 1, "x": [1, 2]}), 422, "shop"), (client.post("/ask", json=[]), 422, None),
            (client.post("/ask", json={"shop": "Bonn", "x": [1, 2], "z": 1}), 422, "z"),
            (client.post("/ask", json=7), 422, None), (client.get("/questions/Oslo/never"), 404, "id"),
            (client.get("/questions/0"), 404, "id"), (client.get("/questions/%00/0"), 404, "id"),
            (client.get(f"/questions/{'a' * 300}/0"), 404, "id"), (client.get("/questions/"), 404, "id"),
            (client.get("/ask"), 405, None),
        ):  # fmt: skip
            assert got.status_code == status, (got.request.url, got.request.content, got.text)
            assert at is None or got.json().get("at") == at, got.text
            assert len(got.json()["error"]) > 10
        assert client.get("/v2/models/fleet").status_code == 404
        assert known(tmp_path) == before
        assert app.owner.failure is None
        assert answer(client, "Oslo", 2).status_code == 200
        new = client.post("/ask", json={"shop": "Oslo", "x": [1.0, 1.0]}).json()
        assert answer(client, "Oslo", new["id"]).status_code == 200


def test_a_question_its_answer_and_a_look_may_come_in_one_block(tmp_path):
    given = ((ASK, [0.5, 1.0], None), (ANSWER, None, "yes"), (LOOK, None, None))
    with made(tmp_path) as app:
        came = asyncio.run(app.owner.happen([KeyedRequest(what, "a", x, y, "Oslo") for what, x, y in given]))
    assert [one.status for one in came] == [200] * 3
    assert "predictions" in came[0].content
    assert "named" in came[1].content
    assert came[2].content["status"] == "answered"


def test_a_label_that_is_repeated_is_compared_as_a_label(tmp_path):
    """True is no number, though Python takes it for 1."""

    def number():
        return venn.predictors.ConformalDistribution(venn.KernelRidge(venn.Linear(), 1.0))

    with served(tmp_path, number) as (client, _):
        ask(client, "Oslo", 0)
        assert answer(client, "Oslo", 0, 1).status_code == 200
        for y, status in ((1.0, 200), (True, 422), (2, 409)):
            assert answer(client, "Oslo", 0, y).status_code == status


def test_a_question_that_was_asked_elsewhere_is_answered(tmp_path):
    with venn.Fleet(lambda key: conformal(), tmp_path) as fleet:
        for id in ("a", "b", "c"):
            fleet.ask("Oslo", [1.0, 1.0], id)
        fleet.answer("Oslo", "b", "no")
        fleet.expire("Oslo", "c")
    with served(tmp_path) as (client, _):
        said = [answer(client, "Oslo", id) for id in ("a", "a", "b", "c", "d")]
        assert [one.status_code for one in said] == [200, 409, 409, 410, 404]
        assert "'b', which is answered" in said[2].text
    with venn.Fleet(lambda key: conformal(), tmp_path) as fleet:
        assert fleet.frame()["answered"].tolist() == [2]


HOSTILE = [
    "", "a" * 201, "k" * 1_000_000, "a\0b", "\n", "a\x1b[2J", "\x85", "\u2028", "\ud800", 7, 1.5, True, None, [], {},
    ["Oslo"], {"Oslo": 1},
]  # fmt: skip


def test_hostile_keys_begin_nothing(tmp_path):
    with served(tmp_path) as (client, app):
        ask(client, "Oslo", 1)
        before = known(tmp_path)
        for key in HOSTILE:
            for path, rest in (("/ask", {"id": 2, "x": [0.5, 1.0]}), ("/answer", {"id": 1, "y": "yes"})):
                got = client.post(path, content=json.dumps({"shop": key, **rest}))
                assert got.status_code == 422
                assert got.json()["at"] == "shop"
                assert got.json()["error"].startswith("shop must")
                assert len(got.text) < 300
                assert got.text.isprintable()
        many = client.post("/ask", json=[{"shop": key, "id": 3, "x": [1, 1]} for key in HOSTILE if key != "\ud800"])
        assert {one["status"] for one in many.json()} == {422}
        assert known(tmp_path) == before
        for key in ("/", "...", "'; DROP TABLE keys; --", "%00", "?find=x", "🙂" * 200, "<script>"):
            assert ask(client, key, 1).status_code == 200
            asked = client.get(f"/questions/{quote(key, safe='')}/1")
            assert (asked.status_code, asked.json()["shop"], asked.json()["status"]) == (200, key, "waits")
            page = client.get("/key", params={"of": key})
            assert page.status_code == 200
            assert "<script" not in page.text
        assert client.get("/").status_code == 200
        assert "<script" not in client.get("/", params={"find": "<script>"}).text
        assert app.owner.failure is None


def test_many_at_once_the_page_the_counts_and_the_description(tmp_path):
    with served(tmp_path) as (client, _):
        many = [{"shop": SHOPS[i % 3], "id": f"m{i}", "x": [i % 5, 1]} for i in range(600)]  # several transactions
        assert client.post("/ask", json=many).status_code == 200
        lines = "\n".join(json.dumps({"shop": one["shop"], "id": one["id"], "y": "yes"}) for one in many[:3]).encode()
        told = client.post("/answer", content=lines, headers={"Content-Type": "application/x-ndjson"})
        assert [json.loads(one)["shop"] for one in told.text.splitlines()] == SHOPS
        mixed = [{"shop": "Oslo", "id": "m0", "y": "no"}, {"shop": "Oslo", "id": "m6", "y": "no"}, {"id": "m6"}, 7]
        some = client.post("/answer", json=mixed)
        assert some.status_code == 207
        assert [one.get("status", 200) for one in some.json()] == [409, 200, 422, 422]
        assert [one.get("at") for one in some.json()] == ["[0].y", None, "[2].shop", "[3]"]
        assert client.post("/ask", json=[{"shop": "Oslo", "x": [1, 1]}] * 10_001).status_code == 413
        shows = client.get("/questions/Riga%2FSud%20%3Cb%3E/m1").json()
        assert (shows["status"], shows["y"], shows["answer"]) == ("answered", "yes", {"named": []})
        page = client.get("/")
        assert "All 3 keys" in page.text
        assert "script" not in page.headers["Content-Security-Policy"]
        assert "200 asked, 2 answered" in client.get("/key", params={"of": "Oslo"}).text
        metrics = client.get("/metrics").text
        assert "venn_fleet_keys 3.0" in metrics
        assert "venn_fleet_questions_total 600.0" in metrics
        assert "Oslo" not in metrics
        described = client.get("/openapi.json").json()["paths"]
        assert "/questions/{shop}/{id}" in described
        schema = described["/ask"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert set(schema["required"]) <= schema["properties"].keys()
        assert client.get("/docs").status_code == 200
        for path, methods in described.items():
            for method in methods:
                url = path.replace("{shop}", "Oslo").replace("{id}", "m0")
                content = methods[method].get("requestBody", {}).get("content", {}).get("application/json")
                body = None if content is None else json.dumps(content["example"])
                assert client.request(method.upper(), url, content=body).status_code in (200, 404, 422), path


def test_what_breaks_says_so_and_what_has_no_folder_is_refused(tmp_path):
    with served(tmp_path) as (client, app):
        assert ask(client, "Oslo", 1).status_code == 200
        with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:  # as a disk that fails
            db.execute("DROP TABLE keys")
        assert ask(client, "Bonn", 1).status_code == 503
        assert client.get("/readyz").status_code == 503
    assert isinstance(app.owner.failure, JournalError)
    owner = FleetOwner(lambda: venn.Fleet(lambda key: conformal()), "shop")
    owner.wait()
    assert "must have a folder" in str(owner.failure)


# ------------------------------------------------------------------------------------------------------------- killed

CAR = {"buying": "vhigh", "maint": "low", "doors": "2", "persons": "4", "lug_boot": "big", "safety": "high"}
COMMAND = ["--like", "car", "--key", "shop", "--predictors", "conformal", "--journal", "shops"]


class Shopkeeper(threading.Thread):
    """Asks, answers and repeats until it has done enough; sends each request until it is answered."""

    def __init__(self, address, shop, many):
        super().__init__()
        self.address, self.shop, self.many, self.told, self.wrong = address, shop, many, [], []

    def post(self, path, message):
        while True:
            try:
                said = httpx.post(f"{self.address}{path}", json=message, timeout=60)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if said.status_code == 200:
                self.told.append((path, message, said.text))
                return
            if said.status_code != 503:
                self.wrong.append(said.text)
                return
            time.sleep(0.05)

    def run(self):
        for id in range(self.many):
            self.post("/ask", {"shop": self.shop, "id": id, "x": CAR | {"doors": str(2 + id % 3)}})
            if id % 7:  # some labels never come
                self.post("/answer", {"shop": self.shop, "id": id, "y": "acc" if id % 3 else "unacc"})
            time.sleep(0.02)


def killed(folder, kills, many, seed):
    """Kill now the owner, now the web server, while each shop asks and answers; compare with a life without a kill."""
    dice, keepers, port = random.Random(seed), [], 0
    for kill in range(kills):
        with process(folder, *COMMAND, "--port", port) as begun:
            port = begun.address.rpartition(":")[2]
            if not kill:
                keepers = [Shopkeeper(begun.address, shop, many) for shop in SHOPS]
                for one in keepers:
                    one.start()
            time.sleep(dice.uniform(0.1, 1))
            os.kill([begun.pid, *begun_by(begun.pid)][kill % 2], signal.SIGKILL)
            begun.wait(60)
    with process(folder, *COMMAND, "--port", port) as begun:
        for one in keepers:
            one.join()
        assert not [wrong for one in keepers for wrong in one.wrong]
        for one in keepers:
            for path, message, text in dice.sample(one.told, many // 2):
                assert httpx.post(f"{one.address}{path}", json=message, timeout=60).text == text
        begun.send_signal(signal.SIGTERM)
        assert begun.wait(60) == 0
        assert "Traceback" not in begun.stderr.read()
    (folder / "alone").mkdir()
    with process(folder / "alone", *COMMAND, "--port", 0) as begun:
        for one in keepers:
            whole = Shopkeeper(begun.address, one.shop, many)
            whole.run()
            assert whole.told == one.told
        begun.send_signal(signal.SIGTERM)
        assert begun.wait(60) == 0
    whole, parts = (sorted(row[1:] for row in known(folder / name)) for name in ("alone/shops", "shops"))
    assert whole == parts
    assert [row[1] for row in whole] == [many] * len(SHOPS)


def test_killed_at_random_it_keeps_all_that_it_has_said(tmp_path):
    killed(tmp_path, kills=2, many=24, seed=0)


def test_check_and_what_it_refuses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, ["serve", *COMMAND, "--check"])
    assert "a model of its own for each shop\njournal: the folder shops, a new one" in said.output
    (tmp_path / "file").write_text("")
    for options, words in (
        (["--journal", "file"], "must be a folder"), (["--patience", "5"], "--patience does not go with --key"),
        (["--key", "id"], "key must be another name"),
        (["--key", "predictions"], "--key must be no name that replies have, got 'predictions'"),
    ):  # fmt: skip
        refused = CliRunner().invoke(main, ["serve", *COMMAND, *options])
        assert refused.exit_code
        assert words in refused.output
    assert not (tmp_path / "shops" / FILE).exists()
