/** Counts of the requests of an environment, which the overview shows. */
import { assert, it, layer } from "@effect/vitest"
import { Context, DateTime, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { RequestCountRepository, type RequestMinute } from "#sql/projects/requests"
import { RequestCounts, requestCounts } from "#server/platform/request-counts"
import { at, guest, request } from "#testing/players"
import { ask } from "../../support/developer-requests.ts"
import {
  addressOfNode,
  buildAnother,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const developer = yield* makeDeveloper
  const { development, projectId } = yield* makeTenantsOf(developer.developerId)
  const url = yield* addressOfNode
  const overview = (env: string) =>
    ask(developer, "GET", `/v1/projects/${projectId}/environments/${env}/overview`)
  const latest = (what: "minutes" | "hours", env = "development") =>
    Effect.map(overview(env), ({ body }) => {
      const course = Object(at(body, "requests", what))
      return [course.length, course.at(-1), course.at(-2)]
    })
  return { development, latest, projectId, target: { url, ...development } }
})

const startOf = (unit: "minute" | "hour") =>
  Effect.map(DateTime.now, (now) => DateTime.formatIso(DateTime.startOf(now, unit)))

const count = (start: string, requests: number, clientErrors = 0, serverErrors = 0) => ({
  start,
  requests,
  clientErrors,
  serverErrors
})

const zeros = { requests: 0, clientErrors: 0, serverErrors: 0 }

layer(Node)("the requests of an environment", (test) => {
  test.effect("counts requests by minute and by status, without those of developers", () =>
    Effect.gen(function* () {
      const counts = yield* RequestCounts
      const { latest, target } = yield* setUp
      const [minute, hour] = [yield* startOf("minute"), yield* startOf("hour")]
      yield* guest(target)
      yield* request(`${target.url}/v1/saves`, { headers: { "x-svc-key": target.publishableKey } })
      yield* latest("minutes")
      yield* counts.flush
      yield* guest(target)
      yield* counts.flush
      const [length, first, before] = yield* latest("minutes")
      assert.deepStrictEqual([length, first], [60, count(minute, 3, 1)])
      assert.deepInclude(before, zeros)
      yield* TestClock.adjust("1 minute")
      yield* guest(target)
      yield* counts.flush
      const second = count(yield* startOf("minute"), 1)
      assert.deepStrictEqual(yield* latest("minutes"), [60, second, first])
      assert.deepStrictEqual((yield* latest("hours")).slice(0, 2), [24, count(hour, 4, 1)])
      assert.deepInclude((yield* latest("minutes", "production"))[1], zeros)
    })
  )

  test.effect("adds up the requests of all nodes, and ends their counts with the project", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { development, latest, projectId } = yield* setUp
      const here = yield* RequestCounts
      const there = Context.get(yield* buildAnother(nodeWith()), RequestCounts)
      const { environmentId } = development
      for (const status of [200, 302, 404, 429, 500, 503, 503]) here.add(environmentId, status)
      there.add(environmentId, 201)
      there.add(EnvironmentId.make("env_00000000000000000000000000"), 200)
      yield* Effect.all([here.flush, there.flush], { concurrency: 2 })
      const sum = count(yield* startOf("minute"), 8, 2, 3)
      assert.deepStrictEqual((yield* latest("minutes"))[1], sum)
      yield* sql`delete from projects where id = ${projectId}`
      here.add(environmentId, 200)
      yield* here.flush
      const rows = yield* sql`
        select 1 from request_minutes where environment_id = ${environmentId}`
      assert.deepStrictEqual(rows, [])
    })
  )

  test.effect("keeps counts of requests for a day", () =>
    Effect.gen(function* () {
      const repository = yield* RequestCountRepository
      const { development } = yield* setUp
      const { environmentId } = development
      const now = yield* DateTime.now
      const minute = (hoursAgo: number): RequestMinute => ({
        environmentId,
        minute: DateTime.subtract(now, { hours: hoursAgo }),
        requests: 1,
        clientErrors: 0,
        serverErrors: 0
      })
      yield* repository.add([minute(1), minute(23), minute(25)])
      // A node sweeps when it starts.
      yield* buildAnother(nodeWith())
      const since = DateTime.subtract(now, { hours: 48 })
      const left = repository.minutes({ environmentId, since })
      const { length } = yield* left.pipe(Effect.repeat({ until: (rows) => rows.length < 3 }))
      assert.strictEqual(length, 2)
    })
  )
})

it.layer(Layer.empty)("a node", (test) => {
  test.effect(
    "stores counts of requests under their minute when the database is back, within a bound",
    () =>
      Effect.gen(function* () {
        const stored: Array<RequestMinute> = []
        let isAway = true
        const repository = Layer.mock(RequestCountRepository)({
          add: (minutes) =>
            isAway ? Effect.die("away") : Effect.sync(() => void stored.push(...minutes)),
          sweep: () => Effect.void
        })
        const services = yield* Layer.build(Layer.provide(RequestCounts.layer, repository))
        const counts = Context.get(services, RequestCounts)
        const environmentOf = (index: number) =>
          EnvironmentId.make(`env_${String(index).padStart(26, "0")}`)
        counts.add(environmentOf(0), 200)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(counts.flush)))
        yield* TestClock.adjust("1 minute")
        for (let index = 0; index < requestCounts.waitingMax; index++)
          counts.add(environmentOf(index), 500)
        isAway = false
        yield* counts.flush
        yield* counts.flush
        assert.lengthOf(stored, requestCounts.waitingMax)
        const [first, second] = stored
        assert.deepInclude(first, { environmentId: environmentOf(0), requests: 1, serverErrors: 0 })
        assert.deepInclude(second, {
          environmentId: environmentOf(0),
          requests: 1,
          serverErrors: 1
        })
        const apart =
          Number(second?.minute.epochMilliseconds) - Number(first?.minute.epochMilliseconds)
        assert.strictEqual(apart, 60_000)
      })
  )
})
