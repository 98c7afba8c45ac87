/**
 * Runs inside workerd, sealed from the player's modules: it checks that a call is the service's own. Each
 * call has a header that says what it is, after the HMAC of that text under a key that only the service and
 * this module have. The runtime evaluates this module before any module of the player, and it
 * keeps the functions that it needs, so that nothing patched later sees the key.
 */
const subtle = crypto.subtle
const importKey = subtle.importKey.bind(subtle)
const verify = subtle.verify.bind(subtle)
const digest = subtle.digest.bind(subtle)
const fromHex = Uint8Array.fromHex.bind(Uint8Array)
const encoder = new TextEncoder()
const encode = encoder.encode.bind(encoder)
const decoder = new TextDecoder()
const decode = decoder.decode.bind(decoder)
const parse = JSON.parse
const now = Date.now
const defineProperty = Object.defineProperty
/** Characters of the HMAC in hexadecimal, which the text follows. */
const macCharacters = 64
const hmac = { name: "HMAC", hash: "SHA-256" }

/**
 * Keeps a promise of a key from getters on its prototype: `await` reads its `constructor`, and would show it.
 */
const kept = (promise) => defineProperty(promise, "constructor", { value: Promise })

/** Calls behind the newest one of which each is remembered: far more than are under way at once. */
const remembered = 65_536

/** Returns a function that says whether a number is new. It remembers a window behind the newest. */
const numbers = () => {
  const used = new Uint32Array(remembered / 32)
  let newest = 0
  return (number) => {
    if (!(number > newest - remembered)) return false
    for (let next = Math.max(newest, number - remembered) + 1; next <= number; next += 1) {
      used[(next % remembered) >>> 5] &= ~(1 << (next & 31))
    }
    newest = number > newest ? number : newest
    const slot = (number % remembered) >>> 5
    const bit = 1 << (number & 31)
    if ((used[slot] & bit) !== 0) return false
    used[slot] |= bit
    return true
  }
}

const framingOf = (headers) =>
  headers.get("transfer-encoding") ?? headers.get("content-length") ?? ""

/**
 * Returns a function that returns what the service says about a request, with the body of its own ones;
 * undefined for a request of anybody else, or one that has been used.
 */
export const authentic = (secret) => {
  const key = kept(importKey("raw", fromHex(secret), hmac, false, ["verify"]))
  const isNew = numbers()
  const isSigned = async (text, mac) => {
    try {
      return await verify("HMAC", await key, fromHex(mac), encode(text))
    } catch {
      return false
    }
  }
  return async (request) => {
    const { headers, method } = request
    const call = headers.get("x-svc-call") ?? ""
    const text = call.slice(macCharacters)
    if (!(await isSigned(`call\n${text}`, call.slice(0, macCharacters)))) return
    const facts = parse(text)
    if (facts.until < now() || !isNew(facts.number)) return
    if (facts.method !== method || facts.framing !== framingOf(headers)) return
    if (facts.digest === undefined) return { facts }
    const body = await request.arrayBuffer()
    const actual = new Uint8Array(await digest("SHA-256", body)).toHex()
    return actual === facts.digest ? { facts, body: parse(decode(body)) } : undefined
  }
}

export default ({ key }) => authentic(key)
