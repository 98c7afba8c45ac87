/**
 * Runs inside workerd, sealed from the player's modules as `authentic.js` is: the way of the bindings to
 * the service. Each request has the HMAC of its method, path and body.
 */
const subtle = crypto.subtle
const importKey = subtle.importKey.bind(subtle)
const sign = subtle.sign.bind(subtle)
const digest = subtle.digest.bind(subtle)
const toHex = Function.prototype.call.bind(Uint8Array.prototype.toHex)
const bytesOf = (buffer) => new Uint8Array(buffer)
const encoder = new TextEncoder()
const encode = encoder.encode.bind(encoder)
const stringify = JSON.stringify
const now = Date.now
const defineProperty = Object.defineProperty
const hmac = { name: "HMAC", hash: "SHA-256" }
const lifetimeMillis = 60_000

/**
 * Keeps a promise of a key from getters on its prototype: `await` reads its `constructor`, and would show it.
 */
const kept = (promise) => defineProperty(promise, "constructor", { value: Promise })

let last = 0

export default ({ host, key: secret }) => {
  const key = kept(importKey("raw", Uint8Array.fromHex(secret), hmac, false, ["sign"]))
  /** Sends a request with a text as its body. */
  return async (method, path, body = "") => {
    const facts = stringify({
      number: (last += 1),
      until: now() + lifetimeMillis,
      method,
      path,
      digest: toHex(bytesOf(await digest("SHA-256", encode(body))))
    })
    const mac = toHex(bytesOf(await sign("HMAC", await key, encode(`host\n${facts}`))))
    return host.fetch(`http://host${path}`, {
      method,
      headers: { "content-type": "application/json", "x-svc-call": mac + facts },
      ...(body === "" ? {} : { body })
    })
  }
}
