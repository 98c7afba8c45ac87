/**
 * Doors beside HTTP: a call in the process reaches the endpoints that the matrix opens to its door, and
 * no other; it keeps the rules of a request.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { ProjectId } from "#rpc/ids"
import { http } from "#rpc/limits"
import { type Door, doors } from "#rpc/operations"
import { Environments } from "#server/features/projects/environments"
import { type Endpoint, endpoints, inProcessEndpoints } from "#server/http/authorization"
import { InProcess, type InProcessCall } from "#server/platform/in-process"
import { at } from "#testing/players"
import { makeTenants, nodeWith, SharedDatabase, type Tenant } from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const all = [...endpoints, ...inProcessEndpoints]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

const text = new TextDecoder()

/** Values of path parameters for which there is nothing, so that no call changes anything. */
const nothing: Readonly<Record<string, string>> = {
  playerId: `pl_${"0".repeat(26)}`,
  version: "x"
}

const fill = (path: string): string =>
  path.replace(/:([A-Za-z0-9]+)/g, (_, name: string) => nothing[name] ?? "nothing")

/** Open endpoints that answer a missing target as if there were no such path. */
const missing = new Set(["POST /v1/admin/functions/dead-letters/:id/retry"])

const isMethod = Schema.is(Schema.Literals(["DELETE", "GET", "PATCH", "POST", "PUT"]))

interface Made {
  readonly tenant: Tenant
  readonly projectId: ProjectId
}

const make = Effect.gen(function* () {
  const { development } = yield* makeTenants
  const environments = yield* Environments
  const { projectId } = yield* environments.findByKey(development.secretKey)
  return { tenant: development, projectId }
})

const callAs = Effect.fnUntraced(function* (
  { projectId, tenant: { environmentId, name } }: Made,
  door: Door,
  call: InProcessCall
) {
  const inProcess = yield* InProcess
  const actor = { kind: "system", id: door, name: door } as const
  const caller = { environment: { environmentId, projectId, name }, actor, door }
  const { body, status } = yield* inProcess.call(caller, call)
  const answer: unknown = JSON.parse(text.decode(body))
  return { status, body: answer, outcome: `${status} ${at(answer, "error", "code") ?? ""}` }
})

describe("the endpoints of doors", () => {
  it("repeats no HTTP route in the process", () => {
    const routes = all.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ":")}`)
    assert.deepStrictEqual(
      routes.filter((route, index) => routes.indexOf(route) !== index),
      []
    )
  })

  it("opens every endpoint that only calls in the process reach to a door", () => {
    assert.deepStrictEqual(
      inProcessEndpoints.filter(({ openTo }) => openTo.length === 0),
      []
    )
  })
})

layer(Node, { timeout: "60 seconds" })("calls in the process", (it) => {
  it.effect("reach exactly the endpoints that the matrix opens to their door", () =>
    Effect.gen(function* () {
      const made = yield* make
      const wrong: Array<string> = []
      for (const endpoint of all) {
        const { method, openTo, path } = endpoint
        if (!isMethod(method) || missing.has(nameOf(endpoint))) continue
        for (const door of doors) {
          const body = method === "GET" ? {} : { body: "{}" }
          const { outcome } = yield* callAs(made, door, { method, path: fill(path), ...body })
          const isClosed = outcome === "404 not_found"
          if (isClosed === openTo.includes(door)) {
            wrong.push(`${nameOf(endpoint)} answers ${outcome} to ${door}`)
          }
        }
      }
      assert.deepStrictEqual(wrong, [])
    })
  )

  it.effect("keep the bounds of bodies: size, text and exact numbers", () =>
    Effect.gen(function* () {
      const made = yield* make
      const outcomes = yield* Effect.forEach(
        [
          JSON.stringify({ reason: "x".repeat(http.bodyMaxBytes) }),
          Buffer.from([0x7b, 0xff, 0x7d]),
          '{"durationHours":12345678901234567890}',
          "{"
        ],
        (body) => {
          const path = fill("/v1/admin/players/:playerId/ban")
          return callAs(made, "functions", { method: "POST", path, body })
        }
      )
      assert.deepStrictEqual(
        outcomes.map(({ outcome }) => outcome),
        ["413 payload_too_large", "400 invalid_json", "400 invalid_request", "400 invalid_json"]
      )
      assert.strictEqual(at(outcomes[0]?.body, "error", "details", "limit"), http.bodyMaxBytes)
    })
  )

  it.effect("take two dots in a path for an id", () =>
    Effect.gen(function* () {
      const made = yield* make
      const path = "/v1/admin/players/../../admin/rooms"
      const { outcome } = yield* callAs(made, "functions", { method: "GET", path })
      assert.strictEqual(outcome, "404 not_found")
      const ban = { method: "POST", path: "/v1/admin/players/../ban", body: "{}" } as const
      const { outcome: banned } = yield* callAs(made, "functions", ban)
      assert.strictEqual(banned, "404 player_not_found")
    })
  )

  it.effect("answer a defect with a request id, which the log has", () =>
    Effect.gen(function* () {
      const made = yield* make
      const sql = yield* SqlClient.SqlClient
      yield* sql`alter table sanctions rename to hidden_sanctions`
      const path = "/v1/admin/appeals"
      const { body, outcome } = yield* callAs(made, "agent", { method: "GET", path })
      yield* sql`alter table hidden_sanctions rename to sanctions`
      assert.strictEqual(outcome, "500 internal_error")
      assert.match(String(at(body, "error", "details", "requestId")), /-call-\d+$/)
    })
  )
})
