/**
 * Runs inside workerd, as the only way out for the player's modules: it counts the requests of each call.
 * Its network refuses addresses that are not public, after names are resolved.
 */
const second = 1000
const rememberedCalls = 10_000

/** Requests by call, and those without a valid id by second. */
const counts = new Map()

const fromHex = (text) =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))

let key

const isSigned = async (env, text, signature) => {
  key ??= await crypto.subtle.importKey(
    "raw",
    fromHex(env.key),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"]
  )
  return crypto.subtle.verify("HMAC", key, fromHex(signature), new TextEncoder().encode(text))
}

/** What a request counts for: its call, else the second in which it is sent. */
const countedFor = async (env, token) => {
  const [id = "", until = "", signature = ""] = (token ?? "").split(".")
  const isKnown = counts.has(id)
  if (Number(until) > Date.now() && (isKnown || (await isSigned(env, `${id}.${until}`, signature))))
    return id
  return `second-${Math.trunc(Date.now() / second)}`
}

const count = (name) => {
  const used = (counts.get(name) ?? 0) + 1
  counts.delete(name)
  counts.set(name, used)
  for (const oldest of counts.keys()) {
    if (counts.size <= rememberedCalls) break
    counts.delete(oldest)
  }
  return used
}

const refuse = (reason, message) =>
  new Response(message, { status: 503, headers: { "x-svc-refused": reason } })

export default {
  async fetch(request, env) {
    const name = await countedFor(env, request.headers.get("x-svc-call"))
    if (count(name) > env.limit) {
      return refuse("subrequests", `Too many subrequests: one call may send ${env.limit}.`)
    }
    const headers = new Headers(request.headers)
    headers.delete("x-svc-call")
    try {
      const response = await fetch(new Request(request, { headers, redirect: "manual" }))
      if (!response.headers.has("x-svc-refused")) return response
      const clean = new Response(response.body, response)
      clean.headers.delete("x-svc-refused")
      return clean
    } catch (error) {
      const { hostname } = new URL(request.url)
      return refuse(
        "network",
        `Failed to fetch from ${hostname}: it is unreachable or not public (${error.message}).`
      )
    }
  }
}
