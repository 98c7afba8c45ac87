/** Calls that another runner does not take for calls of its cluster: their clients learn that in the form of errors. */
import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, connect, createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { WebSocket } from "ws"
import { EnvironmentId } from "#rpc/ids"
import { CallSeal, type RunnerCall } from "#server/features/functions/runners/call-seal"
import { RunnerConnections } from "#server/features/functions/runners/connections"
import { proxyRequest, proxySocket } from "#server/features/functions/runners/proxy"
import { receiveFrom } from "#server/features/functions/runners/proxy-server"

const keyOf = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)

const call: RunnerCall = {
  environmentId: EnvironmentId.make(`env_${"0".repeat(26)}`),
  forwarded: { mount: "app", url: "http://game.example/", clientAddress: "192.0.2.1" }
}

/** A runner before another one that has another key. */
const startRunners = async () => {
  const faults: Array<unknown> = []
  const serve = receiveFrom({
    seal: new CallSeal([keyOf(2)]),
    here: () => undefined,
    operate: async () => undefined,
    onFault: (fault) => void faults.push(fault)
  })
  const other = createServer(serve).listen(0, "127.0.0.1")
  await once(other, "listening")
  const { port } = other.address() as AddressInfo
  const dial = async () => {
    const socket = connect(port, "127.0.0.1")
    await once(socket, "connect")
    return socket
  }
  const connections = new RunnerConnections(dial, new CallSeal([keyOf(1)]))
  const way = { connections, address: "127.0.0.1:1", watchers: new Set<() => void>() }
  const own = createHttpServer((request, response) => {
    void proxyRequest(way, { request, response }, call)
  })
  own.on("upgrade", (request, socket, head) => {
    void proxySocket(way, { request, socket, head }, call)
  })
  own.listen(0, "127.0.0.1")
  await once(own, "listening")
  const close = () => {
    connections.close()
    own.closeAllConnections()
    own.close()
    other.close()
  }
  return { faults, close, url: `http://127.0.0.1:${(own.address() as AddressInfo).port}/` }
}

describe("a call that another runner refuses", () => {
  it("answers 503 unavailable to a request and to a WebSocket, and is logged there", async () => {
    const { close, faults, url } = await startRunners()
    const response = await fetch(url)
    const { error } = await response.json()
    assert.deepStrictEqual([response.status, error.code], [503, "unavailable"])
    const socket = new WebSocket(url.replace("http", "ws"))
    socket.on("error", () => undefined)
    const [, refusal] = await once(socket, "unexpected-response")
    assert.strictEqual(refusal.statusCode, 503)
    assert.lengthOf(faults, 2)
    socket.terminate()
    close()
  })
})
