/**
 * Checks the autoscaler against the fields of `autoscaling/v2` that it uses, the deployment that it
 * scales, and the metric that the service exposes. Runs no cluster.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse, parseAllDocuments } from "yaml"
import { at } from "#testing/players"

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

const Seconds = (max: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: max }))

/** Bounds of the API: a window lasts at most an hour, a period at most half of one. */
const ScalingRules = Schema.Struct({
  stabilizationWindowSeconds: Seconds(3600),
  policies: Schema.Tuple([
    Schema.Struct({
      type: Schema.Literals(["Pods", "Percent"]),
      value: Schema.Int.check(Schema.isGreaterThan(0)),
      periodSeconds: Seconds(1800)
    })
  ])
})

const Autoscaler = Schema.Struct({
  apiVersion: Schema.Literal("autoscaling/v2"),
  kind: Schema.Literal("HorizontalPodAutoscaler"),
  metadata: Schema.Struct({ name: Schema.String }),
  spec: Schema.Struct({
    scaleTargetRef: Schema.Struct({
      apiVersion: Schema.String,
      kind: Schema.String,
      name: Schema.String
    }),
    minReplicas: Schema.Int,
    maxReplicas: Schema.Int,
    metrics: Schema.Tuple([
      Schema.Struct({
        type: Schema.Literal("Pods"),
        pods: Schema.Struct({
          metric: Schema.Struct({ name: Schema.String }),
          target: Schema.Struct({
            type: Schema.Literal("AverageValue"),
            averageValue: Schema.String.check(Schema.isPattern(/^\d+m$/))
          })
        })
      })
    ]),
    behavior: Schema.Struct({ scaleUp: ScalingRules, scaleDown: ScalingRules })
  })
})

/** Unknown fields are errors: Kubernetes would drop them. */
const { spec } = Schema.decodeUnknownSync(Autoscaler, { onExcessProperty: "error" })(
  parse(read("deploy/autoscaling.yaml"))
)
const [metric] = spec.metrics

describe("the autoscaler", () => {
  it("scales the deployment of the runners, within its disruption budget", () => {
    const manifests = parseAllDocuments(read("deploy/kubernetes.yaml")).map((document): unknown =>
      document.toJS()
    )
    const deployment = manifests.find((each) => at(each, "kind") === spec.scaleTargetRef.kind)
    assert.strictEqual(at(deployment, "apiVersion"), spec.scaleTargetRef.apiVersion)
    assert.strictEqual(at(deployment, "metadata", "name"), spec.scaleTargetRef.name)
    const budget = manifests.find((each) => at(each, "kind") === "PodDisruptionBudget")
    assert.isAbove(spec.minReplicas, Number(at(budget, "spec", "minAvailable")))
    assert.isAbove(spec.maxReplicas, spec.minReplicas)
  })

  it("reads the event-loop use that the service exposes", () => {
    const rule: unknown = at(parse(read("deploy/prometheus-adapter.yaml")), "rules", "custom", 0)
    assert.strictEqual(at(rule, "name", "as"), metric.pods.metric.name)
    const [series = ""] = String(at(rule, "seriesQuery")).split("{")
    assert.include(read("src/server/telemetry/process.ts"), `"${series}"`)
    assert.match(String(at(rule, "metricsQuery")), /rate\(<<\.Series>>\{<<\.LabelMatchers>>\}/)
  })

  it("leaves the runners room for the load of a lost one", () => {
    const utilization = Number.parseInt(metric.pods.target.averageValue, 10) / 1000
    const afterLoss = (utilization * spec.minReplicas) / (spec.minReplicas - 1)
    assert.isAtMost(afterLoss, 0.9)
  })

  it("removes runners more slowly than it adds them", () => {
    const { scaleDown, scaleUp } = spec.behavior
    assert.isAbove(scaleDown.stabilizationWindowSeconds, scaleUp.stabilizationWindowSeconds)
    assert.isAbove(scaleDown.policies[0].periodSeconds, scaleUp.policies[0].periodSeconds)
    assert.strictEqual(scaleDown.policies[0].value, 1)
  })
})
