/** Calls that one runner passes to another: taken once, by the process that they name, as they were sealed. */
import { IncomingMessage, type OutgoingHttpHeaders } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { functionLeases } from "#rpc/functions/runtime-limits"
import { EnvironmentId } from "#rpc/ids"
import { CallSeal, type SealedCall } from "#server/features/functions/runners/call-seal"

const keyOf = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)

const call: SealedCall = {
  environmentId: EnvironmentId.make(`env_${"0".repeat(26)}`),
  forwarded: {
    mount: "app",
    url: "http://game.example/ä",
    clientAddress: "192.0.2.1",
    playerId: "pl_1"
  },
  method: "GET",
  path: "/request",
  framing: ""
}

/** The request that carries a call. */
const requestOf = (
  headers: OutgoingHttpHeaders,
  { method, path }: SealedCall = call
): IncomingMessage =>
  Object.assign(new IncomingMessage(new Socket()), { headers, method, url: path })

describe("seals of calls between runners", () => {
  it("take a call once, with its facts", () => {
    const receiver = new CallSeal([keyOf(1)])
    const sender = new CallSeal([keyOf(1)])
    const request = requestOf(sender.headersOf(receiver.receiver, call))
    const { environmentId, forwarded } = call
    assert.deepStrictEqual(receiver.open(request), {
      kind: "taken",
      call: { environmentId, ...(forwarded === undefined ? {} : { forwarded }) }
    })
    assert.strictEqual(receiver.open(request).kind, "refused")
  })

  it("refuse strangers, changed facts, and a request that is not the sealed one", () => {
    const receiver = new CallSeal([keyOf(1)])
    const sender = new CallSeal([keyOf(1)])
    const sealed = () => sender.headersOf(receiver.receiver, call)
    const text = "x-svc-runner-call"
    const other = sender.headersOf(receiver.receiver, {
      ...call,
      forwarded: { mount: "app", url: "http://a/", clientAddress: "6.6.6.6", playerId: "pl_2" }
    })
    const refused = [
      requestOf({}),
      requestOf(new CallSeal([keyOf(2)]).headersOf(receiver.receiver, call)),
      requestOf({ ...sealed(), "x-svc-mac": "" }),
      requestOf({ ...sealed(), [text]: other[text] }),
      requestOf(sealed(), { ...call, method: "POST" }),
      requestOf(sealed(), { ...call, path: "/operation" }),
      requestOf({ ...sealed(), "content-length": "5" }),
      requestOf({ ...sealed(), "transfer-encoding": "chunked" })
    ]
    for (const request of refused) assert.strictEqual(receiver.open(request).kind, "refused")
  })

  it("refuse a call that was recorded before its receiver started", () => {
    const sender = new CallSeal([keyOf(1)])
    const recorded = requestOf(sender.headersOf(new CallSeal([keyOf(1)]).receiver, call))
    assert.strictEqual(new CallSeal([keyOf(1)]).open(recorded).kind, "elsewhere")
  })

  it("hold while runners replace their key one after the other", () => {
    const before = new CallSeal([keyOf(1)])
    const after = new CallSeal([keyOf(2), keyOf(1)])
    for (const [from, to] of [
      [before, after],
      [after, before]
    ] as const) {
      assert.strictEqual(to.open(requestOf(from.headersOf(to.receiver, call))).kind, "taken")
    }
  })

  it("take no call again after very many senders", () => {
    const receiver = new CallSeal([keyOf(1)])
    const sender = new CallSeal([keyOf(1)])
    const recorded = requestOf(sender.headersOf(receiver.receiver, call))
    assert.strictEqual(receiver.open(recorded).kind, "taken")
    for (let i = 0; i <= functionLeases.sendersRemembered; i += 1) {
      receiver.open(requestOf(new CallSeal([keyOf(1)]).headersOf(receiver.receiver, call)))
    }
    assert.strictEqual(receiver.open(recorded).kind, "elsewhere")
    const again = requestOf(sender.headersOf(receiver.receiver, call))
    assert.strictEqual(receiver.open(again).kind, "taken")
  })
})
