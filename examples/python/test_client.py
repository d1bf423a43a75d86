"""go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- python3 -m unittest
or let the tests start the double: EVENTSD=./eventsd python3 -m unittest"""

import email.utils
import json
import os
import threading
import time
import unittest
import urllib.error
import urllib.request

from client import Client
from double import Double, check_idempotency_keys

LAUNCH = {"title": "Launch", "start_at": "2030-03-01T18:00:00Z", "end_at": "2030-03-01T20:00:00Z"}
CREATE = "POST /events/create"
LIST = "GET /events"


class TestClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["no_proxy"] = "*"  # for the client; the double needs no proxy
        cls.double = Double()
        cls.addClassCleanup(cls.double.stop)

    def setUp(self):
        self.new_user(self._testMethodName)

    def new_user(self, name):
        """Creates a user and a client that only notes how long it would sleep."""
        issued = self.double.new_key(name)
        self.user, self.waits = issued["user_id"], []
        self.addCleanup(self.double.verify, self.user)
        self.client = Client(self.double.base_url, issued["secret"], sleep=self.waits.append)

    def test_create(self):
        for number in "000001", "000002":
            event = self.client.create(LAUNCH)
            self.assertEqual(event["id"], self.user.replace("usr_", "evt_") + "_" + number)  # on every run
            self.assertEqual(event["host_id"], self.user)
        self.assertEqual(json.loads(self.double.requests(self.user)[0]["body"]), LAUNCH)

    def test_pages(self):
        """Reads two pages, the second one in two attempts."""
        created = [self.client.create(LAUNCH) for _ in range(3)]
        self.double.fail(self.user, {"operation": LIST, "status": 500, "skip": 1, "times": 1})
        self.assertEqual(self.client.events(limit=2), created[::-1])
        attempts = self.double.requests(self.user, LIST)
        self.assertEqual([attempt["status"] for attempt in attempts], [200, 500, 200])

    def test_retry(self):
        """Creates one event after each temporary failure."""
        for name, fault in {
            "status 408": {"status": 408},
            "status 429": {"status": 429},
            "status 500": {"status": 500},
            "status 503": {"status": 503},
            "status 504": {"status": 504},
            "an error page of a proxy": {"status": 502, "body": "<html>Bad gateway</html>"},
            "a lost request": {"drop_request": True},
            "a lost response": {"drop_response": True},
            "half a response": {"cut_response": True},
            "a gateway that gave up": {"drop_response": True, "status": 504},
        }.items():
            with self.subTest(name):
                self.new_user(name)
                self.double.fail(self.user, {"operation": CREATE, "times": 1, **fault})
                self.client.create(LAUNCH)
                check_idempotency_keys(self.double.requests(self.user, CREATE, count=2))
                self.assertEqual(self.double.count_events(self.user), 1)
                self.assertEqual(len(self.waits), 1)

    def test_final(self):
        """Doesn't retry after other errors."""
        for status in 400, 401, 403, 404, 413, 422:
            with self.subTest(status):
                self.new_user(f"status {status}")
                self.double.fail(self.user, {"operation": CREATE, "status": status})
                with self.assertRaises(urllib.error.HTTPError) as caught:
                    self.client.create(LAUNCH)
                caught.exception.close()
                self.assertEqual(caught.exception.code, status)
                self.assertEqual(len(self.double.requests(self.user)), 1)

    def test_give_up(self):
        """Gives up after waits of 1, 2, 4 and 8 seconds."""
        self.double.fail(self.user, {"operation": CREATE, "status": 500, "times": 9})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.client.create(LAUNCH)
        caught.exception.close()
        check_idempotency_keys(self.double.requests(self.user, CREATE, count=5))
        self.assertEqual([round(wait / 2**i) for i, wait in enumerate(self.waits)], [1, 1, 1, 1])
        self.assertNotEqual(self.waits, [1, 2, 4, 8], "the waits have no random part")

    def test_retry_after(self):
        date = email.utils.formatdate(time.time() + 60, usegmt=True)
        for value in "20", date, email.utils.formatdate(0, usegmt=True):
            header = {"Retry-After": [value]}
            self.double.fail(self.user, {"operation": CREATE, "status": 429, "header": header, "times": 1})
        self.client.create(LAUNCH)
        self.assertEqual(self.waits[0], 20)
        self.assertAlmostEqual(self.waits[1], 55, delta=5)
        self.assertEqual(self.waits[2], 0)

    def test_unknown_value(self):
        self.double.fail(self.user, {"operation": CREATE, "patch": {"status": "archived", "capacity": None}})
        event = self.client.create(LAUNCH)
        self.assertEqual((event["status"], event["capacity"]), ("archived", None))

    def test_web_page(self):
        """Sends what a web page may send. A browser first asks about headers that it doesn't send itself."""
        self.client.create(LAUNCH)
        header = self.double.requests(self.user)[0]["header"]
        added = header.keys() - {"Accept-Encoding", "Connection", "Content-Length", "User-Agent"}
        url = self.double.base_url + "/events/create"
        preflight = urllib.request.Request(url, method="OPTIONS", headers={
            "Origin": "http://localhost:5173",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ",".join(added).lower(),
        })
        with urllib.request.urlopen(preflight, timeout=10) as response:
            self.assertEqual(response.status, 204)
            self.assertEqual(response.headers["Access-Control-Allow-Origin"], "*")
            allowed = response.headers["Access-Control-Allow-Headers"].split(", ")
        self.assertLessEqual({name.lower() for name in added}, set(allowed))

    def test_clock(self):
        """Moves the clock of a double of its own, because all users of a double share its clock."""
        own = Double(own=True)
        self.addCleanup(own.stop)
        client = Client(own.base_url, own.new_key("Grace")["secret"])
        client.create(LAUNCH)
        own.advance("24h")
        client.create(LAUNCH)
        times = [event["created_at"] for event in client.events()]
        self.assertEqual(times, ["2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z"])
        own.verify()

    def test_mistakes(self):
        """Finds mistakes. A double of its own keeps this run successful."""
        own = Double(own=True)
        self.addCleanup(own.stop)

        def give_up(wait):
            raise TimeoutError

        client = Client(own.base_url, own.new_key("Grace")["secret"], sleep=give_up)
        own.fail(None, {"operation": CREATE, "drop_response": True, "times": 1})
        with self.assertRaises(TimeoutError):
            client.create(LAUNCH)
        client.create(LAUNCH)  # with another Idempotency-Key
        with self.assertRaisesRegex(AssertionError, "unsafe retry"):
            own.verify()
        own.clear_requests()

        # Stops waiting for the first response, but leaves its connection open.
        fault = own.fail(None, {"operation": CREATE, "delay": "1m", "times": 1})
        waiting = threading.Thread(target=client.create, args=(LAUNCH,))
        waiting.start()
        own.requests(count=1)
        client.create(LAUNCH)
        self.assertEqual(len(own.problems()), 2)
        own.clear_fault(fault["id"])
        waiting.join()

        with self.assertRaisesRegex(AssertionError, "want the same Idempotency-Key"):
            check_idempotency_keys(own.requests(operation=CREATE))
        with self.assertRaisesRegex(RuntimeError, "it must be one of"):
            own.fail(None, {"operation": "POST /event", "drop_request": True})
        with self.assertRaisesRegex(RuntimeError, "user is missing"):
            own.fail("", {"operation": CREATE, "drop_request": True})


if __name__ == "__main__":
    unittest.main()
