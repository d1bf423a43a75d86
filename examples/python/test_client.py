"""go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- python3 -m unittest
or let the tests start the double: EVENTSD=./eventsd python3 -m unittest"""

import json
import unittest
import urllib.error

from client import Client
from double import Double, same_key

LAUNCH = {"title": "Launch", "start_at": "2030-03-01T18:00:00Z", "end_at": "2030-03-01T20:00:00Z"}
CREATE = "POST /events/create"


class TestClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.double = Double()
        cls.addClassCleanup(cls.double.stop)

    def setUp(self):
        """Each test has a user of its own, named after it."""
        issued = self.double.new_key(self._testMethodName)
        self.user = issued["user"]
        self.client = Client(self.double.base_url, issued["key"])

    def test_create(self):
        event = self.client.create(LAUNCH)
        self.assertEqual(event["id"], self.user.replace("usr_", "evt_") + "_000001")  # the same on every run
        self.assertEqual(event["host_id"], self.user)

    def test_pages(self):
        made = [self.client.create(LAUNCH) for _ in range(3)]
        self.assertEqual(self.client.events(limit=2), made[::-1])
        pages = [r["query"] for r in self.double.requests(self.user) if r["operation"] == "GET /events"]
        self.assertEqual(len(pages), 2)

    def test_error(self):
        self.double.fail(self.user, {"operation": CREATE, "status": 503, "times": 2})
        self.client.create(LAUNCH)
        tries = self.double.tries(self.user, CREATE, count=3)
        self.assertEqual([t["status"] for t in tries], [503, 503, 201])

    def test_proxy_page(self):
        self.double.fail(self.user, {"operation": CREATE, "status": 403, "body": "<html>Forbidden</html>"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.client.create(LAUNCH)
        self.assertEqual(caught.exception.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual([r["fault"] for r in self.double.requests(self.user)], ["status 403"])

    def test_lost_response(self):
        self.double.fail(self.user, {"operation": CREATE, "lose": True, "times": 1})
        self.client.create(LAUNCH)
        self.assertEqual(self.double.count_events(self.user), 1)
        tries = self.double.tries(self.user, CREATE, count=2)
        self.assertEqual([t["status"] for t in tries], [201, 201])  # both are carried out
        self.assertEqual([t["fault"] for t in tries], ["lose", ""])
        self.assertTrue(same_key(tries))
        self.assertEqual(json.loads(self.double.requests(self.user)[1]["body"]), LAUNCH)

    def test_gateway_gives_up(self):
        fault = {"operation": CREATE, "lose": True, "status": 504, "times": 1}
        self.double.fail(self.user, fault)
        self.client.create(LAUNCH)
        self.assertEqual(self.double.count_events(self.user), 1)
        self.assertTrue(same_key(self.double.tries(self.user, CREATE, count=2)))

    def test_unknown_value(self):
        self.double.fail(self.user, {"operation": CREATE, "patch": {"status": "archived", "capacity": None}})
        event = self.client.create(LAUNCH)
        self.assertEqual((event["status"], event["capacity"]), ("archived", None))

    def test_half_response(self):
        self.double.fail(self.user, {"operation": CREATE, "cut": True, "times": 1})
        self.client.create(LAUNCH)
        self.assertEqual(self.double.count_events(self.user), 1)
        self.assertEqual(len(self.double.tries(self.user, CREATE, count=2)), 2)

    def test_refusal(self):
        self.double.fail(self.user, {"operation": CREATE, "status": 429})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.client.create(LAUNCH)
        self.assertEqual(caught.exception.code, 429)
        self.assertEqual(len(self.double.requests(self.user)), 1)

    def test_unknown_operation(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.double.fail(self.user, {"operation": "POST /event", "drop": True})
        with caught.exception as error:
            self.assertIn("it must be one of", json.load(error)["error"]["message"])


if __name__ == "__main__":
    unittest.main()
