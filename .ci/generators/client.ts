// Creates an event and lists events by the types that openapi-typescript wrote, and holds
// the answers against the schemas that the zod generator of @hey-api/openapi-ts wrote.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';
import { zApiDescription, zError, zEvent, zEventList, zGuestList, zNewEvent, zUser } from './zod/zod.gen.js';

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
	baseUrl: process.env.EVENTS_BASE_URL ?? '',
	headers: { 'x-service-api-key': process.env.EVENTS_API_KEY ?? '' },
});

// must returns the data of an answer, or ends the program with its error.
function must<T>(answer: { data?: T; error?: components['schemas']['Error'] }): T {
	if (answer.data === undefined) {
		throw new Error(answer.error?.error.message ?? 'no answer');
	}
	return answer.data;
}

const body: components['schemas']['NewEvent'] = {
	title: 'Launch party',
	start_at: '2030-07-01T16:00:00Z',
	end_at: '2030-07-01T21:00:00Z',
	location_type: 'virtual',
	meeting_url: 'https://example.com/x',
	description: null,
};
zNewEvent.parse(body);
const created = must(await client.POST('/events/create', {
	body,
	params: { header: { 'Idempotency-Key': 'typescript' } },
}));
const event = zEvent.parse(created);
const city: string | null = created.location_city;
if (event.start_at !== body.start_at || event.location_type !== 'virtual' || city !== null) {
	throw new Error(`the create answered ${JSON.stringify(event)}`);
}

const list = zEventList.parse(must(await client.GET('/events', { params: { query: { limit: 1 } } })));
if (list.data[0]?.id !== event.id || !list.has_more) {
	throw new Error(`the list answered ${JSON.stringify(list)}`);
}
zEvent.parse(must(await client.GET('/events/{id}', { params: { path: { id: 'evt_engines' } } })));
zGuestList.parse(must(await client.GET('/events/{id}/guests', { params: { path: { id: 'evt_engines' } } })));
zUser.parse(must(await client.GET('/users/me')));
zApiDescription.parse(must(await client.GET('/openapi')));

const refused = await client.POST('/events/create', { body: { ...body, title: ' ' } });
if (zError.parse(refused.error).error.code !== 'bad_request' || zNewEvent.safeParse({ ...body, title: ' ' }).success) {
	throw new Error(`a blank title answered ${JSON.stringify(refused)}`);
}
console.log('openapi-typescript and zod: created and listed', event.id);
