// Creates an event and lists events with the types that openapi-typescript generated. Then gets an event with
// values that openapi.json doesn't know, also with the client that @hey-api/openapi-ts generated, which checks
// responses with zod.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';
import { createClient as createZodClient } from './zod/client/index.js';
import { getEvent } from './zod/index.js';

declare const process: { env: Record<string, string> };

const options = {
	baseUrl: process.env.EVENTS_BASE_URL,
	headers: { 'x-service-api-key': process.env.EVENTS_API_KEY },
};
const client = createClient<paths>(options);

function check(ok: boolean, response: unknown): asserts ok {
	if (!ok) throw new Error(`got ${JSON.stringify(response)}`);
}

const body: components['schemas']['NewEvent'] = {
	title: 'Launch party',
	start_at: '2030-07-01T16:00:00Z',
	end_at: '2030-07-01T21:00:00Z',
	location_type: 'virtual',
	description: null,
};
const header = { 'Idempotency-Key': 'once' };
const created = await client.POST('/events/create', { body, params: { header } });
check(created.data !== undefined, created);
const city: string | null = created.data.location_city;
check(city === null && created.data.start_at === body.start_at, created);

const list = await client.GET('/events', { params: { query: { limit: 1 } } });
check(list.data?.data[0]?.id === created.data.id && list.data.has_more, list);
const guests = await client.GET('/events/{id}/guests', { params: { path: { id: 'evt_engines' } } });
check(guests.data?.data[0]?.event_id === 'evt_engines', guests);
const refused = await client.POST('/events/create', { body: { ...body, title: ' ' } });
check(refused.error?.error.code === 'bad_request', refused);

const title = 'é'.repeat(300);
const fault = { operation: 'GET /events/{id}', patch: { status: 'archived', seats: 40, title } };
const faults = `${process.env.EVENTS_CONTROL_URL}/faults`;
const set = await fetch(faults, { method: 'POST', body: JSON.stringify(fault) });
check(set.status === 201, set.status);
const path = { id: created.data.id };
for (const got of [
	await client.GET('/events/{id}', { params: { path } }),
	await getEvent({ client: createZodClient(options), path }),
]) {
	check(got.data?.status === 'archived' && got.data.title === title, got);
}
console.log('openapi-typescript and zod: created, listed and got', path.id);
