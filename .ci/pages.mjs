// Uses the two web pages in Chromium as a person does: types, clicks, presses Tab, and reads what they show.
//
//	EVENTSD=PROGRAM CHROMIUM=PROGRAM node --test pages.mjs
//	EVENTSD=PROGRAM CHROMIUM=PROGRAM PICTURES=DIRECTORY node --test --test-name-pattern pictures pages.mjs
//
// The second command writes the pictures of README.md. Both need playwright-core and axe-core.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {createInterface} from 'node:readline';
import {after, before, test} from 'node:test';
import {chromium} from 'playwright-core';

const {EVENTSD, CHROMIUM, PICTURES} = process.env;
const patience = 90_000; // ms for one step, on a busy machine
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const directory = mkdtempSync(`${tmpdir()}/pages-`); // where curl lines run
let browser;
before(async () => { browser = await chromium.launch({executablePath: CHROMIUM}); });
after(async () => {
  await browser?.close();
  rmSync(directory, {recursive: true});
});

// Text of a request. As HTML it would run a script, and without quotes a shell would run its command.
const attack = `<img src=x onerror="window.attacked = true"> it's '$(touch attacked)' "quoted" \\n`;
const {paths} = JSON.parse(readFileSync('openapi.json', 'utf8'));
const operations = Object.values(paths).flatMap(Object.values) // with the status of a success
  .map(({operationId, responses}) => [operationId, Number(Object.keys(responses)[0])]);

// start starts eventsd. The result has the lines that it prints, such as base_url, and its origin as root.
async function start(...args) {
  const child = spawn(EVENTSD, [...args], {stdio: ['ignore', 'pipe', 'inherit']});
  const server = {stop: () => child.kill()};
  for await (const line of createInterface({input: child.stdout})) {
    const [, name, value] = line.match(/^(\w+): (.*)/);
    server[name] = value;
    if (name === 'ready') break;
  }
  assert.ok(server.ready, `eventsd ${args.join(' ')} is not ready`);
  server.root = new URL(server.base_url).origin;
  return server;
}

// shell runs a curl line as a person would who pastes it. It returns the status and the body of the response.
function shell(line) {
  const script = `curl() { command curl -s -w '\\n%{http_code}' "$@"; }\n${line}`;
  const printed = execFileSync('sh', ['-c', script], {cwd: directory, encoding: 'utf8'});
  const [, body, status] = printed.match(/([^]*)\n(.*)$/);
  return {status: Number(status), body};
}

const control = (server, method, path, body) =>
  fetch(server.control_url + path, {method, body: body && JSON.stringify(body)});

const call = (server, path, body, headers) => fetch(server.base_url + path, {
  signal: AbortSignal.timeout(patience),
  method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
  headers: {'x-service-api-key': server.api_key, ...body && {'Content-Type': 'application/json'}, ...headers},
});

const event = title => ({title, start_at: '2030-02-01T10:00:00Z', end_at: '2030-02-01T11:00:00Z'});

// until waits for a condition on the page.
async function until(read, want) {
  const deadline = Date.now() + patience;
  for (;;) {
    const got = await read();
    if (got === want || want instanceof RegExp && want.test(got)) return;
    if (Date.now() > deadline) assert.fail(`got ${got} after ${patience} ms, want ${want}`);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

// open opens a page. Its `problems` are the errors and warnings of the console, violations of the
// Content-Security-Policy included, and its `fetched` the URLs that it has requested.
async function open(server, path, width, {description, ...options} = {}) {
  const context = await browser.newContext({viewport: {width, height: 900}, isMobile: width < 600,
    permissions: ['clipboard-read', 'clipboard-write'], ...options});
  context.setDefaultTimeout(patience);
  await context.addInitScript({path: axe});
  await context.addInitScript(() => {
    window.shift = 0; // how far the page has moved by itself: https://web.dev/articles/cls
    new PerformanceObserver(list => { for (const {value} of list.getEntries()) window.shift += value; })
      .observe({type: 'layout-shift', buffered: true});
  });
  const page = Object.assign(await context.newPage(), {problems: [], fetched: []});
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) page.problems.push(message.text());
  });
  page.on('pageerror', error => page.problems.push(error.message));
  page.on('request', request => request.url().startsWith('data:') || page.fetched.push(request.url()));
  if (description) await page.route('**/openapi.json', route => route.fulfill({json: description}));
  await page.goto(server.root + path);
  return page;
}

// quiet checks that the console has no problems but those that are expected.
function quiet(page, expected = /^$/) {
  assert.deepEqual(page.problems.filter(problem => !expected.test(problem)), []);
  page.problems.length = 0;
}

// looks judges a page by the rules of WCAG 2.1 AA in the light and in the dark, and presses Tab through it.
async function looks(page) {
  const backgrounds = new Set();
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme});
    const {violations, passes} = await page.evaluate(() =>
      axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}));
    assert.deepEqual(violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]), [], colorScheme);
    assert.ok(passes.length >= 20, `axe-core applied ${passes.length} rules only`);
    backgrounds.add(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor));
  }
  assert.equal(backgrounds.size, 2, 'background colors in the light and in the dark');
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.equal(wider, 0, 'pixels by which the page is wider than the screen');
  const count = await page.evaluate(() => {
    document.body.tabIndex = -1; // to begin at the top
    document.body.focus();
    document.body.removeAttribute('tabindex');
    const all = document.querySelectorAll('a[href], button, input, textarea, summary, [tabindex="0"]');
    window.controls = [...all].filter(control => control.checkVisibility({visibilityProperty: true}));
    return controls.length;
  });
  assert.ok(count >= 10, `${count} controls`);
  for (let i = 0; i < count; i++) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      return `${controls.indexOf(element)} ${getComputedStyle(element).outlineStyle} ${element.outerHTML}`;
    });
    assert.match(focused, new RegExp(`^${i} solid `), `focus after ${i + 1} times Tab`);
  }
}

// kept returns everything that could keep a secret longer than the variables of a page.
const kept = page => page.evaluate(() =>
  JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, history.state]));

// check declares a test of a page of `eventsd ARGS` on the screens of a computer and of a phone.
function check(name, args, run) {
  for (const width of [1280, 390]) {
    test(`${name}, ${width} pixels wide`, {timeout: 300_000}, async () => {
      const server = await start(...args);
      try {
        await run(server, width);
      } finally {
        await Promise.all(browser.contexts().map(context => context.close()));
        server.stop();
      }
      assert.equal(existsSync(`${directory}/attacked`), false, 'a curl line ran a command');
    });
  }
}

async function openReference(server, width) {
  const page = await open(server, '/', width);
  await until(() => page.locator('section:has(form)').count(), 6);
  assert.deepEqual(page.fetched, [`${server.root}/`, `${server.root}/openapi.json`]);
  quiet(page);
  return page;
}

// send presses a button of an operation and returns the status and the body that the page then shows.
async function send(page, operation, button = 'Send') {
  const section = page.locator(`#${operation}`);
  await section.getByRole('button', {name: button, exact: true}).click();
  const status = await section.locator('.status', {hasText: /./}).textContent();
  return {status: Number(status), body: await section.locator('.answer').textContent()};
}

const curlOf = (page, operation) => page.locator(`#${operation} .curl`).textContent();

// sendAll sends each operation as the page has prefilled it, and runs its curl line.
async function sendAll(page) {
  for (const [operation, want] of operations) {
    const {status, body} = await send(page, operation);
    assert.equal(status, want, operation);
    assert.equal(body, JSON.stringify(JSON.parse(body), null, 2), `${operation} is indented`);
  }
  for (const [operation, want] of operations) {
    const line = await curlOf(page, operation);
    assert.equal(shell(line).status, want, line);
  }
  quiet(page);
}

check('the reference of the demo', ['demo', '-addr', '127.0.0.1:0'], async (server, width) => {
  const page = await openReference(server, width);
  const top = async selector => (await page.locator(selector).boundingBox()).y;
  const first = await top('#getMe');
  assert.ok(first <= (width < 1280 ? 900 : 700), `the first operation is ${first} pixels down`);
  const distance = await top('#createEvent .bar >> nth=0') - await top('#createEvent');
  assert.ok(distance <= 600, `Send is ${distance} pixels below the heading`);
  const sample = page.locator('#createEvent textarea');
  assert.equal(await sample.evaluate(({scrollHeight, clientHeight}) => scrollHeight - clientHeight), 0);
  for (const key of ['Tab', 'Enter', 'Tab', 'Enter']) await page.keyboard.press(key); // skip link, then Send
  await until(() => page.locator('#getMe .status').textContent(), '200');
  assert.match((await send(page, 'listGuests')).body, /Michael Faraday/);
  await sendAll(page);

  // An answer that comes after that to a later Send isn't shown.
  let late;
  await page.route('**/users/me', route => late ? route.continue() : late = route);
  await page.locator('#getMe').getByRole('button', {name: 'Send'}).click();
  await until(() => Boolean(late), true);
  assert.equal((await send(page, 'getMe')).status, 200);
  await late.fulfill({status: 299, json: {}});
  await send(page, 'listEvents');
  assert.equal(await page.locator('#getMe .status').textContent(), '200');

  const list = page.locator('#listEvents');
  await list.getByLabel('limit').fill('1');
  const newest = await send(page, 'listEvents');
  assert.notEqual((await send(page, 'listEvents', 'Next page')).body, newest.body);
  assert.match(await curlOf(page, 'listEvents'), /limit=1&cursor=/);
  await list.getByLabel('cursor').fill('');
  await list.getByLabel('limit').fill('0');
  const refused = await send(page, 'listEvents');
  assert.equal(refused.status, 400);
  assert.match(refused.body, /limit must be/);
  quiet(page, /status of 400/);

  const body = page.locator('#createEvent').getByLabel('body', {exact: true});
  await list.getByRole('button', {name: 'Copy'}).click();
  await body.fill('');
  await body.press('Control+v');
  assert.equal(await body.inputValue(), await curlOf(page, 'listEvents'), 'the copied text');
  await body.fill(JSON.stringify(event(attack)));
  assert.equal(JSON.parse((await send(page, 'createEvent')).body).title, attack);
  assert.equal(JSON.parse(shell(await curlOf(page, 'createEvent')).body).title, attack);
  assert.equal(await page.evaluate(() => document.images.length + String(window.attacked)), '0undefined');

  for (const name of ['Authentication', 'Lists', 'Errors', 'Retries', 'Browsers', 'Versions']) {
    await page.locator('nav').getByRole('link', {name, exact: true}).click();
    const heading = page.locator('section:last-of-type ~ .chapter h2', {hasText: new RegExp(`^${name}$`)});
    await until(async () => (await heading.boundingBox()).y >= 0, true);
  }
  for (const details of await page.locator('#createEvent .details details').all()) {
    await details.locator('summary').click();
  }
  await looks(page);
  quiet(page);
});

check('the reference of a double', ['double'], async (server, width) => {
  const page = await openReference(server, width);
  assert.equal(await page.locator('#key').inputValue(), server.api_key);
  assert.equal((await send(page, 'listGuests')).status, 200); // of an event that the page creates
  assert.match(await page.locator('#listGuests .note').textContent(), /\/events\/create/);
  const id = await page.locator('#getEvent').getByLabel('id').inputValue();
  assert.equal(JSON.parse((await send(page, 'getEvent')).body).id, id);
  const created = JSON.parse((await send(page, 'createEvent')).body).id; // replaces the other
  assert.equal(await page.locator('#getEvent').getByLabel('id').inputValue(), created);
  await sendAll(page);
  assert.equal(await page.locator('a[href="/_control/"]').count(), 1);
});

const secret = 'svc_live_typed_by_hand_0123456789';
check('the reference of a server with a chosen key', ['-memory', '-addr', '127.0.0.1:0', '-api-key', secret],
  async (server, width) => {
    const page = await openReference(server, width);
    assert.equal(await page.locator('#key').inputValue(), '');
    assert.equal((await send(page, 'getMe')).status, 401);
    quiet(page, /status of 401/);
    await page.locator('#key').fill(` ${secret} `);
    assert.ok((await curlOf(page, 'getMe')).includes(`x-service-api-key: ${secret}'`), 'the key has spaces');
    await sendAll(page);
    assert.ok(!(await kept(page)).includes(secret), 'the key is kept');
  });

// The reference works with other descriptions: header parameters, types, unknown keywords.
check('the reference of another description', ['demo', '-addr', '127.0.0.1:0'], async (server, width) => {
  const description = await (await fetch(`${server.root}/openapi.json`)).json();
  const herd = {type: 'array', maxItems: 3, items: {properties: {foal: {type: 'object'}}}};
  const side = {enum: ['left'], default: 'left'};
  const gait = {type: ['string', 'null'], minLength: 2, 'x-zebra': '<i>keyword</i>'};
  description.paths['/zebras/{stripe}'] = {get: {
    operationId: 'getZebra',
    deprecated: true,
    parameters: [
      {name: 'stripe', in: 'path', required: true, schema: {type: 'integer', exclusiveMinimum: 7}},
      {name: 'Side', in: 'header', description: "A zebra's **own** header.", schema: side},
      {name: 'gait', in: 'query', schema: gait},
    ],
    responses: {200: {
      description: 'A zebra.',
      headers: {Age: {schema: {const: 12}}},
      content: {'application/json': {schema: {properties: {herd}}}},
    }},
  }};
  const page = await open(server, '/', width, {description});
  const section = page.locator('#getZebra');
  const text = await section.textContent();
  for (const want of ['/zebras/{stripe}', 'deprecated true', 'exclusiveMinimum 7', "A zebra's own header.",
    'default left', 'one of left', 'string or null', 'at least 2 characters', 'x-zebra <i>keyword</i>',
    'A zebra.', 'Age', 'always 12', 'at most 3 items', 'herd[].foal']) {
    assert.ok(text.includes(want), `the page lacks ${want}`);
  }
  await section.getByLabel('stripe').fill("a/b'c");
  await section.getByLabel('Side').fill('right');
  await section.getByLabel('gait').fill('trot & walk');
  const line = await curlOf(page, 'getZebra');
  assert.ok(line.includes(String.raw`/zebras/a%2Fb'\''c?gait=trot+%26+walk'`), line);
  assert.ok(line.includes("-H 'Side: right'"), line);
  quiet(page);
});

check('the inspector', ['double'], async (server, width) => {
  const page = await open(server, '/_control', width); // and with a slash below

  // Requests appear as they arrive, newest first, and their text is text.
  const rows = page.locator('#requests > :not([hidden])');
  await call(server, '/users/me');
  const sent = [server, '/events/create', event(attack), {'X-Attack': attack, 'Idempotency-Key': '1'}];
  assert.equal((await call(...sent)).status, 201);
  await call(server, '/events?limit=0');
  await until(() => rows.count(), 3);
  await rows.nth(1).locator('summary').click();
  const line = await rows.nth(1).locator('.curl').textContent();
  const details = await rows.nth(1).textContent();
  for (const want of [`X-Attack: ${attack}`, JSON.stringify(event(attack)), '201', 'usr_owner', server.api_key,
    'Location: /api/public/v1/events/evt_owner_000001', '"id": "evt_owner_000001"']) {
    assert.ok(details.includes(want), `the request lacks ${want}: ${details}`);
  }
  assert.equal(shell(line).status, 201, line);
  await until(() => rows.first().textContent(), /POST \/events\/create replayed/);
  assert.equal(await page.evaluate(() => document.images.length + String(window.attacked)), '0undefined');
  await page.getByLabel('Filter').fill('get limit=0');
  await until(() => rows.count(), 1);
  await rows.first().locator('summary').click();
  await until(() => rows.first().textContent(), /limit must be/);
  await page.getByLabel('Filter').fill('limit must be'); // only in the response
  await until(() => rows.count(), 1);
  await page.getByLabel('Filter').fill('');
  await until(() => rows.count(), 4);
  await page.locator('#requests details[open]').first().waitFor(); // still open
  await page.goto(`${server.root}/_control/`);
  await until(() => rows.count(), 4);
  assert.ok(await page.evaluate(() => window.shift) < .01, 'the page moves while it loads');

  // A fault is set as JSON. The server says what is wrong with it.
  const press = name => page.getByRole('button', {name, exact: true}).click();
  const faults = page.locator('#faults > li');
  const fault = page.getByLabel('New fault');
  await fault.fill('{"operation": "POST /events/create", "stratus": 503}');
  await press('Add fault');
  await until(() => page.locator('form:has(#fault) .problem').textContent(), /stratus.* is not known/);
  quiet(page, /status of 400/);
  for (const text of ['"status": 503, "body": "<html>"', '"drop_request": true', '"drop_response": true',
    '"cut_response": true', '"drop_response": true, "status": 504']) {
    await fault.fill(`{"operation": "POST /events/create", ${text}, "times": 1}`);
    await press('Add fault');
    await until(() => faults.last().textContent(), /hits: 0/);
    await call(...sent).then(response => response.text()).catch(() => {}); // most get no response
    await until(() => faults.last().textContent(), /hits: 1/);
  }
  await until(() => rows.count(), 9);
  assert.deepEqual(await rows.locator('.status').allTextContents(),
    ['504', 'half received', 'not received', 'no response', '503', '201', '400', '201', '200']);

  // A delayed request is shown while it waits. Removing its fault ends the delay.
  await control(server, 'PUT', '/faults', [{operation: 'GET /users/me', delay: '1h'}]);
  const delayed = call(server, '/users/me');
  await until(() => rows.first().locator('.fault').textContent(), 'delay 1h0m0s');
  await until(() => faults.count(), 1);
  await looks(page);

  // What stays the same keeps its selection and its focus, whatever arrives. The focus of a row that is
  // removed goes to the heading.
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.evaluate(() => { window.kept = document.querySelector('#now').firstChild; });
  await faults.getByRole('button', {name: 'Remove'}).focus();
  await control(server, 'POST', '/faults', {operation: 'GET /events', status: 500});
  await until(() => faults.count(), 2);
  const polls = page.fetched.length;
  await until(() => page.fetched.length > polls + 8, true);
  assert.equal(await focused(), 'Remove');
  assert.ok(await page.evaluate(() => kept.isConnected), 'equal text was replaced');
  await faults.first().getByRole('button', {name: 'Remove'}).click();
  assert.equal((await delayed).status, 200);
  await until(() => faults.count(), 1);
  await until(focused, 'Faults');
  await faults.getByRole('button', {name: 'Remove'}).click();
  await until(() => faults.count(), 0);

  // A request without a type has a curl line without one.
  const body = Buffer.from(JSON.stringify(event('Untyped'))); // for which fetch adds no type
  await fetch(`${server.base_url}/events/create`,
    {method: 'POST', body, headers: {'x-service-api-key': server.api_key}});
  await until(() => rows.first().textContent(), /POST \/events\/create/);
  await rows.first().locator('summary').click();
  const untyped = await rows.first().locator('.curl').textContent();
  assert.equal(shell(untyped).status, 201, untyped);
  assert.ok(!(await kept(page)).includes(server.api_key), 'a key is kept');

  // Problems are listed until a reset.
  await call(server, '/event');
  await until(() => page.locator('#problems').textContent(), /^request to an unknown route: \d+: GET .*\/event/);

  const clock = page.locator('#now');
  const now = await clock.textContent();
  await page.getByLabel('Advance by').fill('1h');
  await press('Advance');
  await until(() => clock.textContent(), now.replace('T00:', 'T01:'));
  await press('Reset');
  await until(() => clock.textContent(), now);
  await until(() => rows.count(), 0);
  await until(() => page.locator('#problems > li').count(), 0);

  // After a reset, other requests may have the numbers of the old ones.
  for (let i = 0; i < 2; i++) await call(server, '/users/me');
  await until(() => rows.count(), 2);
  let release, held;
  const released = new Promise(resolve => { release = resolve; });
  await page.route('**/_control/requests?*', route => {
    held = true;
    return released.then(() => route.continue());
  });
  await until(() => Boolean(held), true);
  await control(server, 'POST', '/reset');
  for (let i = 0; i < 3; i++) await call(server, '/events');
  release();
  await until(() => rows.locator('.what').allTextContents().then(String), /^(GET \/events,?){3}$/);
  if (width < 600) return quiet(page);

  // The page shows 1,000 requests, as many as the double remembers.
  for (let i = 0; i < 20; i++) await Promise.all(Array.from({length: 50}, () => call(server, '/users/me')));
  await call(server, '/events?limit=1');
  await until(() => rows.first().textContent(), /limit=1/);
  assert.equal(await rows.count(), 1000);
  quiet(page);
});

check('the pages without a script', ['double'], async (server, width) => {
  for (const path of ['/', '/_control/']) {
    const page = await open(server, path, width, {javaScriptEnabled: false});
    const text = await page.locator('body').innerText();
    assert.equal(text.split('curl ').length, 4, `three curl lines in ${text}`);
    quiet(page);
  }
});

test('pictures of README.md', {skip: !PICTURES}, async () => {
  const demo = await start('demo', '-addr', '127.0.0.1:8080');
  const reference = await openReference(demo, 1280);
  await send(reference, 'getMe');
  await reference.evaluate(() => scrollTo(0, 0));
  await reference.screenshot({path: `${PICTURES}/reference.png`});
  demo.stop();
  const double = await start('double', '-addr', '127.0.0.1:8081');
  await control(double, 'POST', '/faults',
    {operation: 'POST /events/create', drop_response: true, times: 1});
  await call(double, '/users/me');
  const create = ['/events/create', event('Launch party'), {'Idempotency-Key': 'launch-1'}];
  await call(double, ...create).catch(() => {}); // no response
  await call(double, ...create);
  await call(double, '/events?limit=1000');
  await call(double, '/events?limit=10');
  const inspector = await open(double, '/_control', 1280);
  await until(() => inspector.locator('#requests > *').count(), 5);
  await inspector.locator('#requests summary').last().click();
  await inspector.locator('#requests .curl').waitFor();
  await inspector.evaluate(() => scrollTo(0, 0));
  await inspector.screenshot({path: `${PICTURES}/inspector.png`});
  double.stop();
});
