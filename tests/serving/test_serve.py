"""A model behind HTTP: what it says and refuses, that a request can be repeated, and that it is the library's run."""

import asyncio
import json
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from run_cases import left, shown, until
from serve_cases import CLASSES, Threshold, conformal, forecaster, numbers, panel, served
from sklearn.ensemble import HistGradientBoostingClassifier
from starlette.applications import Starlette
from starlette.routing import Mount

import venn
from venn.online.chain import JournalError, decode_object
from venn.online.journal import Journal
from venn.serving.app import ServedModel
from venn.serving.messages import PlainReaders
from venn.serving.owner import ANSWER, ASK, Busy, Job, ModelEvent, RunOwner, _alike
from venn.show import server
from venn.show.server import serving

MODELS = {"forecaster": forecaster, "conformal": conformal, "panel": panel, "numbers": numbers}


def ask(client, id, x=(0.5, 1.0)):
    return client.post("/ask", json={"id": id, "x": list(x)})


def answer(client, id, y="yes"):
    return client.post("/answer", json={"id": id, "y": y})


def test_after_a_burst_the_page_shows_its_last_answers_though_none_come_after(tmp_path, monkeypatch):
    monkeypatch.setattr("venn.online.restart.FRESH", 0.5)
    with served(tmp_path / "run.db") as (client, _):
        for number in range(12):
            ask(client, number)
            answer(client, number)
        until(lambda: shown(tmp_path / "run.db") == 12, seconds=20)


def test_a_question_and_its_answer(tmp_path):
    online = venn.Online(forecaster(), journal=tmp_path / "other.db")
    with served(tmp_path / "run.db") as (client, _):
        for number in range(20):
            x, y = [number % 5 - 2.0, 1.0], CLASSES[number % 2]
            expected = online.ask(x, f"k{number}")
            found = ask(client, f"k{number}", x).json()
            assert found["id"] == f"k{number}"
            assert found["event"] == 2 * number + 1
            assert found["predictions"] == {
                name: json.loads(json.dumps(venn.prediction.plain(one))) for name, one in expected.items()
            }
            alarms = online.answer(f"k{number}", y)
            learned = answer(client, f"k{number}", y).json()
            assert [one["sentence"] for one in learned["alarms"]] == [one.sentence for one in alarms]
            assert learned["verdict"] == "too early to say"
        shown = client.get("/questions/k7").json()
        assert (shown["status"], shown["y"], shown["answer"]["event"]) == ("answered", "yes", 16)
        assert shown["predictions"] == ask(client, "k7", [0.0, 1.0]).json()["predictions"]


def test_every_refusal_has_its_status_and_changes_nothing(tmp_path):
    with served(tmp_path / "run.db", patience=3) as (client, app):
        ask(client, "old")
        for number in range(3):
            ask(client, number)
        answer(client, 1)
        before = left(tmp_path / "run.db")
        for got, status, at in (
            (ask(client, "old", (9.0, 9.0)), 409, "x"), (answer(client, 1, "no"), 409, "y"),
            (answer(client, "never"), 404, "id"), (answer(client, "old"), 410, "id"),
            (answer(client, 2, "perhaps"), 422, "y"), (ask(client, "new", (1.0,)), 422, "x"),
            (ask(client, "new", (666.0, 1.0)), 422, "x"), (ask(client, 1.5), 422, "id"), (ask(client, ""), 422, "id"),
            (client.post("/answer", json={"y": "no"}), 422, "id"), (client.post("/ask", json={"id": "new"}), 422, "x"),
            (client.post("/ask", json={"x": [1, [2]]}), 422, "x[1]"), (client.post("/ask", json=[]), 422, None),
            (client.post("/ask", json={"x": [1, 2], "z": 1}), 422, "z"), (client.post("/ask", content=b"{"), 422, None),
            (client.get("/questions/never"), 404, "id"), (client.get("/ask"), 405, None),
            (client.post("/ask", content=b'{"x": [1, 1], "x": [2, 2]}'), 422, None),
            (client.post("/ask", content=b'{"x": [1, NaN]}'), 422, None),
            (client.post("/ask", content=b'{"x": [1, 2]}', headers={"Origin": str(client.base_url)}), 415, None),
        ):  # fmt: skip
            assert got.status_code == status, (got.request.content, got.text)
            assert got.json().get("at") == at, got.text
            assert len(got.json()["error"]) > 10
            assert got.request.content != b"{" or got.json()["error"].startswith("the body must be JSON: ")
        assert client.post("/ask", content=b"\xff").json()["error"].startswith("the body must be UTF-8: ")
        lines = client.post("/ask", content=b"{\n", headers={"Content-Type": "application/x-ndjson"})
        assert lines.json()["error"].startswith("the line must be JSON: ")
        assert left(tmp_path / "run.db") == before
        assert app.owner.failure is None
        assert ask(client, None, (1.0, 1.0)).json()["id"] == 5, "without an id the number of the question is it"


@pytest.mark.parametrize("model", MODELS)
def test_a_repeated_request_gets_the_same_bytes_also_after_a_restart(model, tmp_path):
    rng, told = np.random.default_rng(0), {}
    steps = 60 if model in ("forecaster", "conformal") else 12
    for life in range(2):
        monitor = {"monitor": venn.Monitor(CLASSES, level=0.5)} if model == "conformal" else {}
        with served(tmp_path / "run.db", MODELS[model](), **monitor) as (client, _):
            for number in range(steps):
                x = rng.integers(-2, 3, size=2).tolist() if life == 0 else told[number][0]
                flip = number > steps / 2  # alarms
                y = float(number % 7) if model == "numbers" else CLASSES[int((x[0] > 0) ^ flip)]
                for _ in range(2):
                    said = ask(client, number, x), answer(client, number, y)
                    assert {one.status_code for one in said} == {200}
                    known = told.setdefault(number, (x, y, *(one.content for one in said)))
                    assert known == (x, y, *(one.content for one in said))
    if model == "conformal":
        assert any(json.loads(one[3])["alarms"] for one in told.values())
        states = [json.loads(one[3])["verdict"] for one in told.values()]
        assert len(set(states)) > 1, "each tells of the state of its time"


def test_clients_at_once_are_the_library_called_in_the_order_of_the_journal(tmp_path):
    def use(client, name, dice):
        waiting = {}
        for number in range(12):
            id, x = f"{name}-{number}", [float(dice.randrange(3)), float(dice.randrange(2))]
            assert ask(client, id, x).status_code == 200
            waiting[id] = CLASSES[dice.randrange(2)]
            while waiting and dice.random() < 0.6:
                one = dice.choice(list(waiting))
                assert answer(client, one, waiting.pop(one)).status_code in (200, 410)

    with served(tmp_path / "run.db", patience=20) as (client, _):
        threads = [threading.Thread(target=use, args=(client, name, random.Random(name))) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = left(tmp_path / "run.db")
    online = venn.Online(forecaster(), journal=Journal(tmp_path / "other.db"), patience=20)
    asked, answered = ({one[at]: one for one in found[of]} for of, at in (("questions", 0), ("answers", 1)))
    with online:
        for event in sorted(asked | answered):
            if event in asked:
                online.ask(decode_object(asked[event][3]), asked[event][1])
            else:
                _, _, question, truth = answered[event]
                online.answer(asked[question][1], CLASSES[truth])
    assert left(tmp_path / "other.db") == found
    assert len(found["questions"]) == 72


def test_many_at_once(tmp_path):
    with served(tmp_path / "run.db") as (client, _):
        many = [{"id": f"m{number}", "x": [number % 3, 1]} for number in range(700)]  # more than one transaction
        listed = client.post("/ask", json=many)
        assert listed.status_code == 200
        assert [one["event"] for one in listed.json()] == list(range(1, 701))
        lines = "\n".join(json.dumps({"id": one["id"], "y": "yes"}) for one in many[:3]).encode() + b"\n\n"
        told = client.post("/answer", content=lines, headers={"Content-Type": "application/x-ndjson"})
        assert told.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(one)["id"] for one in told.text.splitlines()] == ["m0", "m1", "m2"]
        mixed = [{"id": "m0", "y": "no"}, {"id": "m5", "y": "no"}, {"id": "m6", "y": [1]}, 7]
        some = client.post("/answer", json=mixed)
        assert some.status_code == 207
        assert [one.get("status", 200) for one in some.json()] == [409, 200, 422, 422]
        assert [one.get("at") for one in some.json()] == ["[0].y", None, "[2].y", "[3]"]
        assert client.post("/ask", json=[{"x": [1, 1]}] * 10_001).status_code == 413


class Slow(Threshold):
    """Waits until it may answer."""

    def __init__(self):
        self.may = threading.Event()

    def __deepcopy__(self, memo):
        return self

    def predict_proba(self, X):
        self.may.wait(60)
        return super().predict_proba(X)


def test_answers_go_before_questions_but_not_before_what_has_come_of_the_same_id():
    waiting = [[(ASK, "b")], [(ANSWER, "a")], [(ANSWER, "b")], [(ANSWER, "c"), (ASK, "d")], [(ANSWER, "c")]]
    jobs = [SimpleNamespace(events=[ModelEvent(*one) for one in events]) for events in waiting]
    assert _alike(jobs) == [jobs[i] for i in (1, 0, 2, 3, 4)]
    many = [*jobs, *(SimpleNamespace(events=[ModelEvent(ANSWER, i)]) for i in range(3))]
    assert _alike(many) == [jobs[i] for i in (0, 2, 3, 4)]  # those that wait longest, and their like
    assert _alike([jobs[1], jobs[0], *many]) == [jobs[1], jobs[1], *many[5:]]


def test_clients_of_whom_half_ask_while_the_others_answer_soon_do_the_same(tmp_path):
    blocks = list[int]()

    class Seen(RunOwner):
        def _happen(self, online, events):
            done = super()._happen(online, events)
            blocks.append(len(done))
            return done

    owner = Seen(lambda: venn.Online(venn.Forecaster(scorer=Threshold()), journal=tmp_path / "run.db"))

    async def client(name):
        if name % 2:
            await owner.happen([ModelEvent(ASK, f"{name}", np.ones(2))])
        for i in range(20):
            await owner.happen([ModelEvent(ASK, f"{name}-{i}", np.ones(2))])
            await owner.happen([ModelEvent(ANSWER, f"{name}-{i}", y="yes")])

    async def use():
        await asyncio.gather(*map(client, range(20)))

    owner.wait()
    asyncio.run(use())
    owner.close()
    assert sum(blocks) == 810
    assert sorted(blocks)[len(blocks) // 2] > 15


def test_the_owner_waits_for_as_many_as_before_and_no_longer(tmp_path, monkeypatch):
    monkeypatch.setattr("venn.serving.owner.GATHERING", 60)
    owner = RunOwner(lambda: venn.Online(forecaster(), journal=tmp_path / "run.db"))

    async def use():
        await owner.happen([ModelEvent(ASK, id, [0.5, 1.0]) for id in ("a", "b")])
        first = asyncio.ensure_future(owner.happen([ModelEvent(ASK, "c", [0.5, 1.0])]))
        await asyncio.sleep(0.1)
        assert not first.done()
        await asyncio.wait_for(owner.happen([ModelEvent(ASK, "d", [0.5, 1.0])]), 30)
        await first

    owner.wait()
    asyncio.run(use())
    owner.close()


def test_where_too_much_waits_a_client_is_told_to_come_again(tmp_path):
    scorer = Slow()
    model = venn.Forecaster(scorer=scorer)
    owner = RunOwner(lambda: venn.Online(model, journal=tmp_path / "run.db"), most=3)

    async def use(ids):
        first = [asyncio.ensure_future(owner.happen([ModelEvent(ASK, i, np.full(2, i))])) for i in ids]
        await asyncio.sleep(0.1)
        with pytest.raises(Busy, match="3 questions and answers wait already") as caught:
            await owner.happen([ModelEvent(ASK, "one more", np.ones(2))])
        assert (caught.value.status, 1 <= caught.value.seconds < 60) == (429, True)
        gone = first.pop()
        gone.cancel()  # its client has gone: what it asked happens all the same
        scorer.may.set()
        said = await asyncio.gather(*first)
        for i in range(20):  # then it knows how fast it is
            await owner.happen([ModelEvent(ASK, f"{i} after {ids}", np.ones(2))])
        scorer.may.clear()
        return [one[0].status for one in said]

    owner.wait()
    assert [asyncio.run(use(ids)) for ids in ((0, 1, 2), (3, 4, 5))] == 2 * [[200, 200]]
    scorer.may.set()
    owner.close()
    with venn.online.watch.Watch(tmp_path / "run.db") as watch:
        assert watch.counts().asked == 46


def test_it_is_alive_before_it_is_ready_and_ready_no_longer_when_it_ends(tmp_path):
    may = threading.Event()

    def make():
        may.wait(60)
        return venn.Online(forecaster(), journal=tmp_path / "run.db")

    model = ServedModel(RunOwner(make), tmp_path / "run.db", PlainReaders())
    with serving(model.routes, "127.0.0.1", 0) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for path, status in (("/healthz", 200), ("/readyz", 503), ("/v2/health/live", 200), ("/v2/health/ready", 503)):
            assert client.get(path).status_code == status
        early = ask(client, "a")
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        assert "journal is being read: ask again in a second" in early.json()["error"]
        may.set()
        model.owner.wait()
        assert client.get("/readyz").json() == {"ready": True}
        assert ask(client, "a").status_code == 200
        model.close()
        assert client.get("/readyz").status_code == 503
        assert ask(client, "b").status_code == 503
    assert list(tmp_path.glob("run.db-state-000000000001")), "the last checkpoint"


def test_a_run_that_breaks_says_so_and_nobody_is_told_what_is_not_written(tmp_path):
    with served(tmp_path / "run.db") as (client, app):
        assert ask(client, "a").status_code == 200
        (tmp_path / "run.db").unlink()
        lost = ask(client, "b")
        assert lost.status_code == 503
        assert "must stay where it is" in lost.json()["error"]
        assert ask(client, "a").status_code == 503
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    assert isinstance(app.owner.failure, JournalError)


def test_what_cannot_begin_is_said_where_it_begins(tmp_path):
    (tmp_path / "run.db").write_text("no journal")
    with pytest.raises(JournalError, match="cannot be opened"):
        venn.serve(forecaster(), tmp_path / "run.db").__enter__()
    for wrong, said in ((7, "journal must be"), (None, "journal must be")):
        with pytest.raises(TypeError, match=said):
            venn.serve(forecaster(), wrong)
    with pytest.raises(ValueError, match="name must be letters"):
        venn.serve(forecaster(), "run.db", name="a/b")
    lot = venn.online.Lot(0.5)
    for name, value in (("labels", lot), ("judge", print), ("ripe", 3), ("silent", "no")):
        with pytest.raises(
            TypeError, match=f"{name} must not be given: a label of a served run comes by /answer, once"
        ):
            venn.serve(forecaster(), "run.db", **{name: value})
    with pytest.raises(TypeError, match="got a Selective: a journal does not hold its answers"):
        venn.serve(venn.Selective(forecaster()), "run.db")


def test_behind_the_door(tmp_path):
    token = "a-token_of.more~than-16"
    with served(tmp_path / "run.db", token=token) as (client, _):
        for path in ("/ask", "/answer", "/v2/models/model/infer"):
            assert client.post(path, json={}).status_code == 401
            known = {"Authorization": f"Bearer {token}"}
            assert client.post(path, json={}, headers=known).status_code == 422
            assert client.post(path, json={}, headers={**known, "Host": "evil.example"}).status_code == 403
            assert client.post(path, json={}, headers={**known, "Origin": "http://evil.example"}).status_code == 403
        assert client.get("/questions/a").status_code == 401
        assert client.get("/healthz").status_code == 200
        probe = {"Host": "10.0.0.7:8080"}  # as Kubernetes asks: by the address of the pod, without a token
        assert client.get("/readyz", headers=probe).json() == {"ready": True}
        assert client.post("/readyz", headers=probe).status_code == 403
        assert client.get("/v2/health/ready").status_code == 401


@contextmanager
def mounted(path, tmp_path):
    """Give a client of a program in which the model is mounted."""
    with venn.serve(forecaster(), tmp_path / "run.db") as app:
        program = Starlette(routes=[Mount(path, app)])
        with serving(program, "127.0.0.1", 0) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            yield client


@pytest.mark.parametrize("how", ["mounted", "behind a proxy that cuts", "behind a proxy that does not"])
def test_under_a_path(how, tmp_path):
    root = "/models/churn"
    with mounted(root, tmp_path) if how == "mounted" else served(tmp_path / "run.db", root=root) as found:
        client = found if how == "mounted" else found[0]
        at = "" if how == "behind a proxy that cuts" else root
        assert client.post(f"{at}/ask", json={"id": "a/b c", "x": [1, 1]}).status_code == 200
        assert client.get(f"{at}/questions/a%2Fb%20c").json()["status"] == "waits"
        for path, holds in (
            ("/", 'href="page.css"'), ("/docs", "POST /ask"), ("/run.json", '"asked"'),
            ("/metrics", "venn_questions_total 1"),
            ("/openapi.json", f'"url":"{root}"'), ("/v2/models/model", '"platform":"vennstream"'),
        ):  # fmt: skip
            got = client.get(f"{at}{path}")
            assert got.status_code == 200, path
            assert holds in got.text or path == "/run.json"
        assert client.get(f"{at}/nowhere").status_code == 404
        bare = client.get(root)
        assert (bare.status_code, bare.headers["location"].removeprefix(str(client.base_url))) == (307, f"{root}/")


def test_the_description_names_every_address_and_the_docs_load_nothing_from_elsewhere(tmp_path):
    with served(tmp_path / "run.db") as (client, _):
        described, docs = client.get("/openapi.json").json(), client.get("/docs")
        assert described["openapi"].startswith("3.")
        for path, methods in described["paths"].items():
            assert path in docs.text
            for method, one in methods.items():
                assert "200" in one["responses"]
                at = path.replace("{id}", "a8")
                if method == "post":
                    example = one["requestBody"]["content"]["application/json"]["example"]
                    got = client.post(at, json=example)
                else:
                    got = client.get(at)
                assert str(got.status_code) in one["responses"], (path, got.text)
        assert "default-src 'none'" in docs.headers["content-security-policy"]
        assert "http://" not in docs.text.replace("http://HOST", "")
        assert "<script" not in docs.text


def test_the_open_inference_protocol(tmp_path):
    with served(tmp_path / "run.db", panel(), name="churn") as (client, _):
        assert client.get("/v2").json()["name"] == "vennstream"
        described = client.get("/v2/models/churn").json()
        assert described["versions"] == ["1"]
        shapes = [one["shape"] for one in described["inputs"] + described["outputs"]]
        assert shapes == [[-1, -1], [-1], [-1, -1], [-1, -1, 2]], "-1 where any number may stand"
        assert client.get("/v2/models/churn/ready").status_code == 200
        assert client.get("/v2/models/other").status_code == 404
        tensor = {"name": "x", "shape": [3, 2], "datatype": "FP64", "data": [[0, 1], [1, 1], [0, 0]]}
        asked = {"id": "r1", "inputs": [tensor], "parameters": {"ids": ["a", "b", "c"]}}
        said = client.post("/v2/models/churn/infer", json=asked).json()
        assert (said["id"], said["model_name"], said["parameters"]["ids"]) == ("r1", "churn", ["a", "b", "c"])
        found = {one["name"]: one for one in said["outputs"]}
        for one in found.values():
            assert len(one["data"]) == np.prod(one["shape"])
        assert found["abers.probabilities"]["shape"] == [3, 2]
        assert found["abers.probabilities"]["parameters"]["labels"] == list(CLASSES)
        own = ask(client, "b", (1, 1)).json()["predictions"]["abers"]["probabilities"]
        assert found["abers.probabilities"]["data"][2:4] == list(own.values())
        assert client.post("/v2/models/churn/infer", json=asked).json() == said
        only = {**asked, "outputs": [{"name": "conformal.label"}]}
        assert [one["name"] for one in client.post("/v2/models/churn/infer", json=only).json()["outputs"]] == [
            "conformal.label"
        ]
        assert answer(client, "c").status_code == 200
        alone = {"inputs": [{**tensor, "shape": [2], "data": [1, 1]}], "parameters": {"ids": ["d"]}}
        shape = client.post("/v2/models/churn/infer", json={**alone, **{"outputs": only["outputs"]}}).json()["outputs"]
        assert shape[0]["shape"] == [1], "one row"
        for change, said in (
            ({"inputs": []}, "inputs must be a list"), ({"inputs": [tensor, tensor]}, "distinct names"),
            ({"inputs": [{**tensor, "shape": [2, 2]}]}, "must hold 4 values"),
            ({"inputs": [{**tensor, "datatype": "COMPLEX"}]}, "datatype must be one of"),
            ({"parameters": {"ids": ["a"]}}, "ids must be a list of 3"),
            ({"inputs": [{**tensor, "data": [[0, 1], [1, 1], [5, 5]]}]}, "object that was asked about before"),
        ):  # fmt: skip
            got = client.post("/v2/models/churn/infer", json={**asked, **change})
            assert got.status_code in (409, 422)
            assert said in got.json()["error"]


TRITON = """
import sys, numpy as np, tritonclient.http as triton
client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("model")
assert client.get_model_metadata("model")["platform"] == "vennstream"
asked = triton.InferInput("x", [2, 2], "FP64")
asked.set_data_from_numpy(np.array([[0.0, 1.0], [1.0, 1.0]]), binary_data=False)
wanted = [triton.InferRequestedOutput(name, binary_data=False) for name in ("abers.probabilities", "abers.label")]
said = client.infer("model", [asked], outputs=wanted, parameters={"ids": ["a", "b"]})
assert said.as_numpy("abers.probabilities").shape == (2, 2)
assert said.as_numpy("abers.label").shape == (2,)
"""


def test_a_client_that_others_wrote_speaks_the_protocol(tmp_path):
    pytest.importorskip("tritonclient", reason="tritonclient is not installed")
    with served(tmp_path / "run.db", panel()) as (client, _):
        program = [sys.executable, "-c", TRITON, f"127.0.0.1:{client.base_url.port}"]  # gevent changes a whole process
        told = subprocess.run(program, capture_output=True, text=True, timeout=120)
        assert told.returncode == 0, told.stderr
        assert client.get("/questions/b").json()["status"] == "waits"


def test_columns_by_name_for_a_model_that_was_fitted_to_a_table(tmp_path):
    class Named(Threshold):
        feature_names_in_ = np.array(["age", "net"], object)

    with served(tmp_path / "run.db", venn.Forecaster(scorer=Named())) as (client, _):
        by_name = client.post("/ask", json={"id": "a", "x": {"net": 1.0, "age": 0.5}})
        assert by_name.status_code == 200
        columns = [{"name": name, "shape": [2, 1], "datatype": "FP64", "data": [value, value]} for name, value in
                   (("age", 0.5), ("net", 1.0))]  # fmt: skip
        said = client.post("/v2/models/model/infer", json={"inputs": columns}).json()
        found = {one["name"]: one for one in said["outputs"]}["forecast.probabilities"]["data"]
        assert found == 2 * list(by_name.json()["predictions"]["forecast"]["probabilities"].values())
        wrong = client.post("/ask", json={"x": {"age": 0.5, "gross": 1.0}})
        assert (wrong.status_code, "gross" in wrong.json()["error"]) == (422, True)


def test_null_in_a_list_is_a_gap_for_a_model_that_takes_gaps(tmp_path):
    X, rng = np.random.default_rng(0).normal(size=(60, 2)), np.random.default_rng(1)
    fitted = HistGradientBoostingClassifier(max_iter=3).fit(np.where(rng.random(X.shape) < 0.2, np.nan, X), X[:, 0] > 0)
    told = []
    for _ in range(2):  # after a restart, too
        with served(tmp_path / "run.db", venn.Forecaster(scorer=fitted)) as (client, _):
            said = ask(client, "a", (1.0, None))
            assert said.status_code == 200
            told.append(said.content)
            assert ask(client, "a", (1.0, 2.0)).status_code == 409
    assert told[0] == told[1]
    with served(tmp_path / "other.db", venn.Forecaster(CLASSES)) as (client, _):
        wrong = ask(client, "a", (1.0, None))
        assert (wrong.status_code, wrong.json()["error"][:40]) == (422, "x must be finite, got nan at feature 1: ")


def test_a_request_that_is_never_whole_happens_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.3)
    with served(tmp_path / "run.db") as (client, app):
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=30) as slow:
            body = b'{"id": "slow", "x": [1, 1]}'
            head = (
                f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{client.base_url.port}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            slow.sendall(head.encode() + body[:-1])
            start = time.monotonic()
            assert slow.recv(100) == b""
            assert time.monotonic() - start < 20
        assert client.get("/questions/slow").status_code == 404
        assert app.owner.failure is None


def test_several_events_at_once_wait_whole_or_not_at_all_and_never_where_nothing_waits(monkeypatch):
    monkeypatch.setattr(RunOwner, "trouble", "")
    monkeypatch.setattr(RunOwner, "start", lambda _: None)  # nothing is taken

    async def put(*sizes):
        owner = RunOwner(lambda: None, most=3)
        for size in sizes:
            owner.put(Job([ModelEvent(ASK, None)] * size))

    asyncio.run(put(2, 1))
    for first, more in ((2, 2), (3, 1), (1, 3), (4, 1)):  # four may come where nothing waits
        with pytest.raises(Busy, match=f"{first} questions and answers wait already"):
            asyncio.run(put(first, more))


def test_a_page_may_write_its_content_type_in_any_way(tmp_path):
    with served(tmp_path / "run.db") as (client, _):
        origin = str(client.base_url).rstrip("/")
        for kind, status in (("Application/JSON ; charset=utf-8", 200), ("text/plain; application/json", 415)):
            headers = {"Origin": origin, "Content-Type": kind}
            assert client.post("/ask", json={"id": kind, "x": [0.5, 1.0]}, headers=headers).status_code == status
