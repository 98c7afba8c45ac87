/** `svc functions` against a real service, whose runtime records what it is asked. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { FunctionsRecordRepository } from "#sql/functions/records"
import { FunctionsSource } from "#server/features/functions/control-plane"
import { at } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"
import { addDeadLetter } from "../support/dead-letters.ts"
import { call } from "../support/function-calls.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const target = { url, ...development }
  const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: development.secretKey })
  return { folder, target }
})

const json = (text: string): unknown => JSON.parse(text)

layer(Node, { timeout: "60 seconds" })("svc functions", (it) => {
  it.effect(
    "makes an example function, bundles its TypeScript, deploys it and goes back a version",
    () =>
      Effect.gen(function* () {
        const { folder, target } = yield* setUp
        const source = yield* FunctionsSource
        assert.strictEqual((yield* folder.svc("functions init")).code, 0)
        assert.strictEqual((yield* folder.svc("functions init")).code, 2)
        yield* folder.write("functions/greeting.ts", "export const greeting: string = 'hello'\n")
        yield* folder.write(
          "functions/index.ts",
          "import { greeting } from './greeting.ts'\nexport default { fetch: () => greeting }\n"
        )
        const off = yield* folder.svc("functions deploy")
        assert.deepStrictEqual([off.code, off.stdout], [2, ""])
        assert.include(off.stderr, "--enable")
        const first = yield* folder.svc("functions deploy --enable -m First --json")
        assert.deepInclude(json(first.stdout), { version: 1 })
        const state = yield* source.load(target.environmentId)
        assert(state.kind === "live")
        const text = Buffer.from(state.program.modules[0]?.content ?? []).toString()
        assert.include(text, "hello")
        assert.notInclude(text, ": string")
        assert.include((yield* folder.svc("functions deploy")).stdout, "Version 2 is live")
        assert.include((yield* folder.svc("functions rollback")).stdout, "Version 1 is live")
        const unknown = yield* folder.svc("functions rollback 9")
        assert.strictEqual(unknown.code, 2)
        assert.include(unknown.stderr, "There is no version 9")
      })
  )

  it.effect(
    "explains code that does not build and settings that are wrong",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* setUp
        assert.include((yield* folder.svc("functions deploy")).stderr, "svc functions init")
        yield* folder.svc("functions init")
        yield* folder.write("functions/index.ts", "import './missing.ts'\n")
        const unresolved = yield* folder.svc("functions deploy --enable")
        assert.deepStrictEqual([unresolved.code, unresolved.stdout], [1, ""])
        assert.include(unresolved.stderr, "missing.ts")
        yield* folder.write("functions/index.ts", "export default {}\n")
        yield* folder.write(
          "functions/svc.functions.json",
          JSON.stringify({ main: "index.ts", crons: ["never"] })
        )
        const cron = yield* folder.svc("functions deploy --enable")
        assert.strictEqual(cron.code, 1)
        assert.include(cron.stderr, "crons[0]")
        yield* folder.write("functions/svc.functions.json", '{ "main": 1 }')
        assert.strictEqual((yield* folder.svc("functions deploy")).code, 2)
      }),
    { tags: "long" }
  )

  it.effect(
    "migrates and queries databases, and manages secrets without printing them",
    () =>
      Effect.gen(function* () {
        const { folder, target } = yield* setUp
        yield* folder.svc("functions init")
        yield* folder.svc("functions deploy --enable")
        const migrated = yield* folder.svc("functions db migrate DB --json")
        assert.deepStrictEqual(at(json(migrated.stdout), "applied"), ["0001_visits"])
        const rows = yield* folder.svc("functions db query DB select(1)")
        assert.strictEqual(rows.code, 0)
        const set = yield* folder.svc("functions secrets set API_KEY", { stdin: "top secret\n" })
        assert.deepStrictEqual([set.code, set.stderr], [0, ""])
        const status = yield* call(target, "GET")
        assert.deepStrictEqual(at(status.body, "secrets"), ["API_KEY"])
        const listed = yield* folder.svc("functions secrets list")
        assert.include(listed.stdout, "API_KEY")
        assert.notInclude(listed.stdout, "top secret")
        assert.strictEqual((yield* folder.svc("functions secrets delete API_KEY")).code, 0)
        assert.strictEqual((yield* folder.svc("functions secrets delete API_KEY")).code, 2)
        assert.strictEqual((yield* folder.svc("functions logs")).code, 0)
      }),
    { tags: "long" }
  )

  it.effect("prints log lines as they come until Ctrl-C", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      const records = yield* FunctionsRecordRepository
      const log = Effect.fnUntraced(function* (message: string) {
        const { environmentId } = target
        const at = yield* DateTime.now
        yield* records.append([{ environmentId, at, level: "warn", message, version: 3 }])
      })
      let printed = ""
      const until = (stdout: string) => {
        printed = stdout
        return stdout.includes("and this later")
      }
      yield* log("was there before")
      const following = yield* Effect.forkChild(folder.svc("functions logs --follow", { until }))
      // The service looks for new lines on the clock of the test.
      const waitFor = (text: string) =>
        TestClock.adjust("1 second").pipe(
          Effect.andThen(call(target, "GET")),
          Effect.repeat({ until: () => printed.includes(text) })
        )
      yield* waitFor("was there before")
      yield* log("and this later")
      yield* waitFor("and this later")
      const { stderr, stdout } = yield* Fiber.join(following)
      assert.match(
        stdout,
        /^\d\d:\d\d:\d\d\.\d{3} warn  v3 was there before\n.* warn  v3 and this later\n$/
      )
      assert.strictEqual(stderr, "")
    })
  )

  it.effect("lists, retries and deletes dead letters of functions", () =>
    Effect.gen(function* () {
      const { folder, target } = yield* setUp
      const first = yield* addDeadLetter(target.environmentId)
      const second = yield* addDeadLetter(target.environmentId)
      const listed = yield* folder.svc("functions queues dead")
      assert.deepStrictEqual([listed.code, listed.stderr], [0, ""])
      assert.include(listed.stdout, `${first} `)
      assert.include(listed.stdout, '{"n":1}')
      assert.notInclude((yield* folder.svc("functions queues dead OTHER")).stdout, first)
      assert.strictEqual((yield* folder.svc(`functions queues delete ${first}`)).code, 0)
      const gone = yield* folder.svc(`functions queues delete ${first}`)
      assert.notStrictEqual(gone.code, 0)
      assert.strictEqual((yield* folder.svc(`functions queues retry ${second}`)).code, 0)
      const left = yield* folder.svc("functions queues dead --json")
      assert.deepStrictEqual(json(left.stdout), { deadLetters: [] })
    })
  )
})
