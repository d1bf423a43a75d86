// A client for the tests of double.cjs.
const event = { title: 'Launch', start_at: '2030-03-01T18:00:00Z', end_at: '2030-03-01T20:00:00Z' }

// Creates an event and returns the status. If there is no response, tries again.
exports.createEvent = async (/** @type {string} */ baseURL, /** @type {object} */ headers) => {
  const send = () => fetch(`${baseURL}/events/create`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(event),
  })
  return (await send().catch(send)).status
}
