/**
 * Runs inside workerd, around the player's modules: it turns the calls of the service into calls of their
 * handlers, and gives each request that they send the signed id of the call that sends it.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { withEnv } from "cloudflare:workers"
import { guardedEnv, setFull } from "./__svc_storage.mjs"

const current = new AsyncLocalStorage()
const send = globalThis.fetch

globalThis.fetch = async function fetch(input, init) {
  const request = new Request(input, init)
  const call = current.getStore()
  request.headers.delete("x-svc-call")
  if (call !== undefined) request.headers.set("x-svc-call", call.token)
  const response = await send(request)
  const refused = response.headers.get("x-svc-refused")
  if (refused === null) return response
  if (refused === "subrequests" && call !== undefined) call.hasExceeded = true
  throw new TypeError(await response.text())
}

/** The request of the client, with what the service knows of it. */
const requestOf = (request, { address, player, url }) => {
  const { headers } = (request = new Request(url, request))
  headers.delete("x-svc-call")
  headers.set("cf-connecting-ip", address)
  // Of a caller's own headers the service passes neither.
  if (player !== undefined) headers.set("svc-player", player)
  return request
}

const failure = (call, error) => {
  console.error(error)
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new Response(
    JSON.stringify({ message: message.slice(0, 2000), hasExceeded: call.hasExceeded }),
    {
      status: 500,
      headers: { "x-svc-outcome": "failed" }
    }
  )
}

/** The handler of a name; undefined if the modules export none. */
const handlerOf = (program, env, ctx, name) => {
  const exported = program.default
  if (typeof exported === "function") {
    const made = new exported(ctx, env)
    return typeof made[name] === "function" ? (value) => made[name](value) : undefined
  }
  const handler = exported?.[name]
  return typeof handler === "function"
    ? (value) => handler.call(exported, value, env, ctx)
    : undefined
}

const missing = (name) => {
  throw new Error(`The main module exports no ${name}: export default { ${name}() {} }`)
}

const decoders = {
  json: (text) => JSON.parse(text),
  text: (text) => text,
  bytes: (text) => Uint8Array.fromBase64(text).buffer
}

/** A batch of messages; the outcome of each is in `outcomes`, undefined until it is acknowledged or retried. */
const batchOf = ({ messages, queue }) => {
  const outcomes = new Map()
  const retried = (options) => ({ retry: true, delaySeconds: options?.delaySeconds })
  const shown = messages.map(({ attempts, body, contentType, id, timestamp }) => ({
    id,
    timestamp: new Date(timestamp),
    body: decoders[contentType](body),
    attempts,
    ack: () => void (outcomes.has(id) || outcomes.set(id, { retry: false })),
    retry: (options) => void (outcomes.has(id) || outcomes.set(id, retried(options)))
  }))
  const batch = {
    queue,
    messages: shown,
    ackAll: () => shown.forEach((message) => message.ack()),
    retryAll: (options) => shown.forEach((message) => message.retry(options))
  }
  return { batch, outcomes }
}

/**
 * The response of a handler with its mark, which stands in place of a header by which it would speak for the
 * service. A response without a mark is the runtime's own, to a call that it could not answer.
 */
const marked = (response) => {
  // An open WebSocket needs no mark.
  if (!(response instanceof Response) || response.status === 101) return response
  let own = response
  try {
    own.headers.set("x-svc-outcome", "returned")
  } catch {
    // The headers of a response from elsewhere cannot be changed.
    own = new Response(response.body, response)
    own.headers.set("x-svc-outcome", "returned")
  }
  return own
}

const kinds = {
  fetch: async (program, env, ctx, { facts, request }) => {
    const handler = handlerOf(program, env, ctx, "fetch") ?? missing("fetch")
    return await handler(requestOf(request, facts))
  },
  scheduled: async (program, env, ctx, { body: { cron, scheduledTime } }) => {
    const handler = handlerOf(program, env, ctx, "scheduled") ?? missing("scheduled")
    await handler({ cron, scheduledTime, type: "scheduled", noRetry: () => {} })
    return Response.json({})
  },
  queue: async (program, env, ctx, { body }) => {
    const handler = handlerOf(program, env, ctx, "queue") ?? missing("queue")
    const { batch, outcomes } = batchOf(body)
    await handler(batch)
    batch.ackAll()
    return Response.json(body.messages.map(({ id }) => outcomes.get(id)))
  },
  hook: async (program, env, ctx, { body: { name, payload } }) => {
    const hook = program[name]
    if (typeof hook === "function") await hook(payload, env, ctx)
    return Response.json({ called: typeof hook === "function" })
  },
  exports: (program) =>
    Response.json({ hooks: hooks.filter((name) => typeof program[name] === "function") })
}

const hooks = ["onStats", "onRoomClosed", "onPlayerCreated"]

const refused = () => new Response(null, { status: 403, headers: { "x-svc-outcome": "refused" } })

/**
 * The entry point of the service, which takes its calls alone. `bare` has the check of them, which the
 * player's modules do not get.
 */
export const serve = (program, stores) => ({
  async fetch(request, bare, ctx) {
    const accepted = await bare.__svc_authentic(request)
    const run = kinds[accepted?.facts.kind]
    if (run === undefined) return refused()
    const { body, facts } = accepted
    setFull(facts.isFull)
    const env = guardedEnv(bare, stores)
    const call = { token: facts.call, hasExceeded: false }
    try {
      const response = await current.run(call, () =>
        withEnv(env, () => run(program, env, ctx, { body, facts, request }))
      )
      return marked(response)
    } catch (error) {
      return failure(call, error)
    }
  }
})
