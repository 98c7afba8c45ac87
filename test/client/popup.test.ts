/** The popup of a sign-in with a provider, from a page with a clock that stands still. */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import type { ProviderResponse } from "#client/oauth-callback"
import { openPopup } from "#client/popup"
import type { Timers } from "#client/timers"

const origin = "https://game.example.com"
const page = new URL(`${origin}/signed-in`)
const answer: ProviderResponse = { code: "code", error: null }

/** A page with a popup, whose time moves only by `pass`. */
const makePage = ({ isolated = false }: { readonly isolated?: boolean } = {}) => {
  const popup = { closed: false, close: () => undefined, location: { replace: () => undefined } }
  const focus = { here: false }
  const target = new EventTarget()
  const waiting = new Set<{ readonly at: number; readonly run: () => void }>()
  let now = 0
  const timers: Timers = {
    now: () => now,
    elapsed: () => now,
    random: () => 0,
    after: (millis, run) => {
      const timer = { at: now + millis, run }
      waiting.add(timer)
      return () => waiting.delete(timer)
    }
  }
  vi.stubGlobal("window", Object.assign(target, { open: () => popup }))
  vi.stubGlobal("document", { hasFocus: () => focus.here })
  vi.stubGlobal("location", { origin })
  vi.stubGlobal("crossOriginIsolated", isolated)
  const late: Array<ProviderResponse> = []
  let outcome: unknown
  const shown = openPopup("id", page, timers)
    .show("https://provider.example.com", (response) => late.push(response))
    .then(
      (response) => (outcome = response),
      (error: { readonly code: string }) => (outcome = error.code)
    )
  return {
    focus,
    popup,
    late,
    shown,
    waiting,
    /** The outcome that is known by now. */
    known: async () => {
      await Promise.resolve()
      await Promise.resolve()
      return outcome
    },
    pass: (millis: number) => {
      const end = now + millis
      for (;;) {
        const next = Array.from(waiting).toSorted((one, two) => one.at - two.at)[0]
        if (next === undefined || next.at > end) break
        waiting.delete(next)
        now = next.at
        next.run()
      }
      now = end
    },
    send: () => {
      const data = { popup: "id", ...answer }
      target.dispatchEvent(new MessageEvent("message", { data, origin }))
    }
  }
}

afterEach(() => {
  vi.unstubAllGlobals()
})

describe("a popup", () => {
  it("a closed popup rejects within two seconds", async () => {
    const { focus, known, pass, popup } = makePage()
    pass(5000)
    assert.isUndefined(await known())
    popup.closed = true
    focus.here = true
    pass(2000)
    assert.strictEqual(await known(), "popup_closed")
    pass(600_000)
  })

  it("a popup that looks closed while it is shown is waited for, also after a look at the page", async () => {
    const { focus, known, pass, popup, send, waiting } = makePage()
    popup.closed = true
    pass(60_000)
    focus.here = true
    pass(20_000)
    focus.here = false
    pass(60_000)
    assert.isUndefined(await known())
    send()
    assert.deepStrictEqual(await known(), answer)
    assert.strictEqual(waiting.size, 0)
  })

  it("a popup of an isolated page is waited for, even if the page always seems to have the focus", async () => {
    const { focus, known, pass, popup, send } = makePage({ isolated: true })
    popup.closed = true
    focus.here = true
    pass(20_000)
    assert.isUndefined(await known())
    send()
    assert.deepStrictEqual(await known(), answer)
  })

  it("a popup that was given up hands a late answer over, once", async () => {
    const { focus, known, late, pass, popup, send, waiting } = makePage()
    popup.closed = true
    focus.here = true
    pass(2000)
    assert.strictEqual(await known(), "popup_closed")
    pass(60_000)
    send()
    send()
    assert.deepStrictEqual(late, [answer])
    assert.strictEqual(waiting.size, 0)
  })

  it("a popup is given up after ten minutes, and then no answer counts", async () => {
    const { known, late, pass, send, waiting } = makePage()
    pass(600_000)
    assert.strictEqual(await known(), "timed_out")
    send()
    assert.deepStrictEqual(late, [])
    assert.strictEqual(waiting.size, 0)
  })
})
