/**
 * The alerts: each metric and label value of an expression is in a scrape of a runner, and Prometheus accepts
 * the file where it is installed. `kube_` metrics are those of kube-state-metrics.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { parse } from "yaml"
import { TestApp } from "#testing/app"
import { at, guest, request } from "#testing/players"
import { freePort } from "#testing/runners"
import { DatabaseLive } from "../support/service.ts"

const file = fileURLToPath(new URL("../../deploy/alerts.yaml", import.meta.url))
const document: unknown = parse(readFileSync(file, "utf8"))

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const rules = list(at(document, "groups")).flatMap((group) => list(at(group, "rules")))
const expressions = rules.map((rule) => ({
  alert: String(at(rule, "alert")),
  expr: String(at(rule, "expr"))
}))

/** One runner of a cluster, whose scrape has the metrics of runner links, too. */
const AppLive = Layer.unwrap(
  Effect.map(freePort, (port) =>
    TestApp.layerWith({ SVC_RUNNER_HOST: "127.0.0.1", SVC_RUNNER_PORT: `${port}` })
  )
).pipe(Layer.provide(DatabaseLive))

/** The metrics of an expression, with the labels that must equal a value. */
const selectors = (expr: string) =>
  Array.from(
    expr.matchAll(/\b(svc_\w+|process_\w+)(?:\{([^}]*)\})?/g),
    ([, name = "", labels = ""]) => ({
      name,
      labels: Array.from(labels.matchAll(/(\w+)="([^"]*)"/g), ([pair]) => pair).filter(
        // Prometheus adds the job; a status appears with the first such response.
        (pair) => !/^(?:job|status)=/.test(pair)
      )
    })
  )

layer(AppLive)("alerts", (it) => {
  it.effect("finds each metric and label of the alerts in a scrape of a runner", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* guest(app)
      const scrape = yield* Effect.map(request(`${app.url}/metrics`), ({ body }) => String(body))
      const samples = scrape.split("\n").filter((line) => !line.startsWith("#"))
      for (const { alert, expr } of expressions) {
        for (const { labels, name } of selectors(expr)) {
          const found = samples.find(
            (line) =>
              (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) &&
              labels.every((pair) => line.includes(pair))
          )
          assert.isDefined(found, `${alert}: no sample of ${name}{${labels.join()}}`)
        }
      }
    })
  )

  it.effect("reports a ready runner with its database and the disk of its data", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const sampled = Effect.map(request(`${app.url}/metrics`), ({ body }) => {
        const text = String(body)
        const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1])
        return (
          value("svc_ready") === 1 &&
          value("svc_database_available") === 1 &&
          value("svc_mails_oldest_seconds") === 0
        )
      })
      // Shards may come after the first sample.
      const next = Effect.andThen(TestClock.adjust("10 seconds"), sampled)
      yield* app.eventually(next, "a ready runner in the metrics")
    })
  )
})

const hasPromtool = (() => {
  try {
    execFileSync("promtool", ["--version"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()
const needsPromtool = hasPromtool ? "" : " (skipped: needs promtool, apt-get install prometheus)"

describe(`the rules file${needsPromtool}`, () => {
  it("names alerts once, each with a severity and a summary", () => {
    const names = expressions.map(({ alert }) => alert)
    assert.strictEqual(new Set(names).size, names.length)
    for (const rule of rules) {
      assert.include(["page", "ticket"], at(rule, "labels", "severity"))
      assert.isString(at(rule, "annotations", "summary"))
    }
  })

  it.skipIf(!hasPromtool)("loads the rules file of the alerts into Prometheus", () => {
    const output = execFileSync("promtool", ["check", "rules", file], { encoding: "utf8" })
    assert.include(output, `SUCCESS: ${rules.length} rules found`)
  })

  it.skipIf(!hasPromtool)(
    "fires each alert at the state that it names, and none on a quiet cluster",
    () => {
      const tests = fileURLToPath(new URL("alerts.promtool.yaml", import.meta.url))
      const output = execFileSync("promtool", ["test", "rules", tests], { encoding: "utf8" })
      assert.include(output, "SUCCESS")
    }
  )
})
