/**
 * Checks the deployment files against the service: settings exist, ports agree, paths exist, and the grace
 * period is long enough for a graceful stop. Runs nothing in Docker.
 */
import { existsSync, readFileSync } from "node:fs"
import { BlockList, isIPv6 } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { parse, parseAllDocuments } from "yaml"
import { network } from "#server/platform/settings/network"
import { Settings, variables } from "#server/platform/settings/settings"
import { at } from "#testing/players"

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

const compose: unknown = parse(read("compose.yaml"), { merge: true })
const manifests: ReadonlyArray<unknown> = parseAllDocuments(read("deploy/kubernetes.yaml")).map(
  (document) => {
    assert.deepStrictEqual(document.errors, [])
    return document.toJS()
  }
)
const manifest = (kind: string, name = "player-backend"): unknown => {
  const found = manifests.filter(
    (each) => at(each, "kind") === kind && at(each, "metadata", "name") === name
  )
  assert.lengthOf(found, 1, kind)
  return found[0]
}
const dockerfile = read("Dockerfile")
const turnserver = read("deploy/turnserver.conf").split("\n")

const list = (value: unknown): ReadonlyArray<unknown> => {
  assert.isTrue(Array.isArray(value), JSON.stringify(value))
  return Array.isArray(value) ? value : []
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(typeof value === "object" && value !== null ? Object.entries(value) : [])

const pod = at(manifest("Deployment"), "spec", "template", "spec")
const container = at(pod, "containers", 0)
const composeRunners = ["runner-1", "runner-2", "runner-3"].map((name) =>
  record(at(compose, "services", name))
)

/** The variables of a list of `name` and `value`. */
const namesIn = (env: unknown) => list(env).map((each) => String(at(each, "name")))
const valueOf = (env: unknown, name: string) =>
  at(
    list(env).find((each) => at(each, "name") === name),
    "value"
  )

const assertVariables = (names: ReadonlyArray<string>) => {
  for (const name of names) assert.property(variables, name)
}

/** What an operator gives each runner as a secret, beside those below. */
const secrets = {
  DATABASE_URL: "postgres://svc_app:secret@postgres.example.com/svc?sslmode=require",
  SMTP_URL: "smtps://user:secret@smtp.example.com:465",
  SVC_METRICS_TOKEN: "a token of 16 or more",
  SVC_SETUP_TOKEN: "another token of 16 or more",
  AWS_ACCESS_KEY_ID: "key",
  AWS_SECRET_ACCESS_KEY: "secret",
  SVC_VOICE_PUBLIC_IP: "203.0.113.7"
}

const mebibyte = 1024 * 1024

/** Bytes of `512m` or `4Gi`. */
const bytesOf = (text: unknown): number => {
  const [, count = "", unit = ""] = /^(\d+)(m|g|Mi|Gi)$/.exec(String(text)) ?? []
  return Number(count) * mebibyte * (/^g/i.test(unit) ? 1024 : 1)
}

/** Memory of a runner beside its functions. */
const runnerBytes = 1536 * mebibyte

/** The settings of a runner in a deployment with these variables. */
const settings = (env: Readonly<Record<string, unknown>>) =>
  Settings.pipe(
    Effect.provide(
      Settings.layer.pipe(
        Layer.provide(
          ConfigProvider.layer(
            ConfigProvider.fromEnv({
              env: {
                ...Object.fromEntries(
                  Object.entries(env).map(([name, value]) => [
                    name,
                    // Variables that compose substitutes.
                    String(value).replaceAll(/\$\{[^}]+\}/g, "placeholder.example")
                  ])
                ),
                ...secrets,
                NODE_ENV: "production",
                SVC_MASTER_KEY: Buffer.from("0123456789abcdefghijklmnopqrstuv").toString("base64"),
                SVC_TURN_SECRET: "a secret of 16 or more",
                SVC_BASE_URL: "https://play.example.com"
              }
            })
          )
        )
      )
    )
  )

describe("the image", () => {
  it("runs the image with the Node version of the tests as an unprivileged user", () => {
    const packages: unknown = JSON.parse(read("package.json"))
    const node = String(at(packages, "dependencies", "node"))
    const bases = Array.from(dockerfile.matchAll(/^FROM (\S+)/gm), ([, base]) => base)
    assert.lengthOf(bases, 3)
    for (const base of bases) assert.strictEqual(base, `node:${node}-bookworm-slim`)
    assert.match(dockerfile, /^USER node$/m)
    assert.match(dockerfile, /npm ci --omit=dev /)
  })

  it("copies each folder that the service imports into the image, with a health check", () => {
    const ignored = read(".dockerignore").split("\n")
    for (const [, folder = ""] of dockerfile.matchAll(/^COPY (?!--)(\w+) \1$/gm)) {
      assert.isTrue(existsSync(new URL(`../../${folder}`, import.meta.url)), folder)
      assert.include(ignored, `!${folder}`)
    }
    for (const folder of ["rpc", "sql", "entities", "src"]) {
      assert.match(dockerfile, new RegExp(`^COPY ${folder} ${folder}$`, "m"))
    }
    assert.isTrue(existsSync(new URL("../../src/server/migrate.ts", import.meta.url)))
    assert.match(dockerfile, /^HEALTHCHECK [\s\S]*\/healthz/m)
    const [, env = ""] = /^ENV (.*)$/m.exec(dockerfile) ?? []
    assertVariables(env.split(" ").map((pair) => pair.split("=")[0] ?? ""))
    assert.include(env, `PORT=${network.port.default}`)
  })
})

describe("compose.yaml", () => {
  it.effect("starts three runners with valid settings", () =>
    Effect.forEach(
      composeRunners,
      Effect.fnUntraced(function* ({ environment, mem_limit, ports }) {
        const env = record(environment)
        assertVariables(Object.keys(env))
        const { functions, production, runner, turn, warnings } = yield* settings(env)
        const ofFunctions = functions.processes * functions.memoryBytes
        assert.isAtLeast(bytesOf(mem_limit), runnerBytes + ofFunctions)
        for (const name of ["SVC_METRICS_TOKEN", "SVC_SETUP_TOKEN", "SMTP_URL"]) {
          assert.property(env, name)
        }
        assert.isTrue(production)
        assert.isEmpty(warnings)
        assert.isDefined(runner)
        assert.isNotEmpty(turn.urls)
        assert.match(String(list(ports)[0]), /^127\.0\.0\.1:808[123]:8080$/)
      })
    )
  )

  it("advertises each runner under its service name", () => {
    const hosts = composeRunners.map(({ environment }) => at(environment, "SVC_RUNNER_HOST"))
    assert.deepStrictEqual(hosts, ["runner-1", "runner-2", "runner-3"])
  })

  it("migrates as the owner, whose password the runners do not get", () => {
    const services = record(at(compose, "services"))
    assert.deepStrictEqual(at(services, "migrate", "command"), ["node", "src/server/migrate.ts"])
    assert.match(String(at(services, "migrate", "environment", "DATABASE_URL")), /\/\/svc_owner:/)
    for (const runner of composeRunners) {
      const condition = at(runner, "depends_on", "migrate", "condition")
      assert.strictEqual(condition, "service_completed_successfully")
      assert.match(String(at(runner, "environment", "DATABASE_URL")), /\/\/svc_app:/)
      assert.notInclude(JSON.stringify(runner), "OWNER")
    }
    const script = "./deploy/roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro"
    assert.include(list(at(services, "postgres", "volumes")), script)
  })

  it("bounds memory and logs of each container, and makes a daily backup that it verifies", () => {
    for (const [name, service] of Object.entries(record(at(compose, "services")))) {
      assert.isAbove(bytesOf(at(service, "mem_limit")), 0, name)
      assert.strictEqual(at(service, "logging", "options", "max-size"), "10m", name)
    }
    const backup = at(compose, "services", "backup")
    const command = String(list(at(backup, "command")).at(-1))
    assert.match(command, /backup\/main\.ts save \S+ &&\s+node \S+backup\/main\.ts verify /)
    assert.match(String(at(backup, "environment", "DATABASE_URL")), /\/\/svc_app:/)
    assert.match(String(at(backup, "environment", "SCRATCH_URL")), /\/\/svc_owner:/)
    const volumes = list(at(backup, "volumes"))
    assert.include(list(composeRunners[0]?.["volumes"]), volumes[0])
  })

  it("opens the port of voice calls of each runner", () => {
    for (const { environment, ports } of composeRunners) {
      const port = String(at(environment, "SVC_VOICE_UDP_PORTS"))
      assert.include(list(ports), `${port}:${port}/udp`)
    }
  })

  it("trusts the gateway of the compose network alone", () => {
    const gateway = at(compose, "networks", "default", "ipam", "config", 0, "gateway")
    assert.isString(gateway)
    for (const { environment } of composeRunners) {
      assert.strictEqual(at(environment, "SVC_TRUSTED_PROXIES"), gateway)
    }
  })

  it("gives each runner 30 seconds to stop", () => {
    for (const { stop_grace_period: grace } of composeRunners) assert.strictEqual(grace, "30s")
  })
})

describe("the Kubernetes manifests", () => {
  it.effect("gives manifests valid settings, and advertises each runner under its pod IP", () =>
    Effect.gen(function* () {
      const env = at(container, "env")
      assertVariables(namesIn(env))
      const own = list(env).find((each) => at(each, "name") === "SVC_RUNNER_HOST")
      assert.strictEqual(at(own, "valueFrom", "fieldRef", "fieldPath"), "status.podIP")
      const { functions, runner, voice, warnings } = yield* settings(
        Object.fromEntries(namesIn(env).map((name) => [name, valueOf(env, name) ?? "10.0.0.1"]))
      )
      assert.isEmpty(warnings)
      const ports = new Map(
        list(at(container, "ports")).map((port) => [at(port, "name"), at(port, "containerPort")])
      )
      assert.strictEqual(ports.get("runner"), runner?.port)
      assert.strictEqual(ports.get("voice"), voice.ports[0])
      const ofFunctions = functions.processes * functions.memoryBytes
      const limit = bytesOf(at(container, "resources", "limits", "memory"))
      assert.isAtLeast(limit, runnerBytes + ofFunctions)
      assert.strictEqual(ports.get("http"), Number(network.port.default))
      assert.match(
        dockerfile,
        new RegExp(`^EXPOSE ${ports.get("http")} ${ports.get("runner")}$`, "m")
      )
    })
  )

  it("migrates as the owner, in a container of its own", () => {
    const migrate = at(pod, "initContainers", 0)
    assert.deepStrictEqual(at(migrate, "command"), ["node", "src/server/migrate.ts"])
    const secretOf = (each: unknown) => at(each, "envFrom", 0, "secretRef", "name")
    assert.strictEqual(secretOf(migrate), "player-backend-owner")
    assert.strictEqual(secretOf(container), "player-backend")
  })

  it("names each secret of a runner in the command that creates them", () => {
    const [head = ""] = read("deploy/kubernetes.yaml").split("apiVersion:")
    const given = Array.from(head.matchAll(/--from-literal=(\w+)=/g), ([, name = ""]) => name)
    assertVariables(given)
    const needed = Object.keys(secrets).filter((name) => name !== "SVC_VOICE_PUBLIC_IP")
    assert.includeMembers(given, needed)
  })

  it("saves each night in the role of the runners, and verifies as the owner", () => {
    const job = at(manifest("CronJob", "player-backend-backup"), "spec", "jobTemplate", "spec")
    const jobPod = at(job, "template", "spec")
    const [save, verify] = [at(jobPod, "initContainers", 0), at(jobPod, "containers", 0)]
    const secretOf = (each: unknown) => at(each, "envFrom", 0, "secretRef", "name")
    assert.strictEqual(secretOf(save), secretOf(container))
    assert.strictEqual(secretOf(verify), secretOf(at(pod, "initContainers", 0)))
    assert.include(String(at(save, "args", 0)), "node src/server/backup/main.ts save ")
    assert.include(String(at(verify, "args", 0)), "node src/server/backup/main.ts verify ")
    assert.strictEqual(
      valueOf(at(save, "env"), "SVC_BLOBS_URL"),
      valueOf(at(container, "env"), "SVC_BLOBS_URL")
    )
    const claim = at(jobPod, "volumes", 0, "persistentVolumeClaim", "claimName")
    assert.isDefined(manifest("PersistentVolumeClaim", String(claim)))
  })

  it("lets nothing in or out of a pod that the policy does not name", () => {
    for (const name of ["player-backend", "player-backend-backup"]) {
      const spec = at(manifest("NetworkPolicy", name), "spec")
      assert.deepStrictEqual(at(spec, "policyTypes"), ["Ingress", "Egress"])
      for (const rule of list(at(spec, "egress"))) assert.isNotEmpty(list(at(rule, "ports")))
    }
    const [http] = list(at(manifest("NetworkPolicy"), "spec", "ingress"))
    assert.isDefined(at(http, "from", 0, "namespaceSelector"))
  })

  it("probes existing paths, and leaves time for a graceful stop", () => {
    const path = (probe: string) => at(container, probe, "httpGet", "path")
    assert.strictEqual(path("livenessProbe"), "/healthz")
    assert.strictEqual(path("startupProbe"), "/healthz")
    assert.strictEqual(path("readinessProbe"), "/readyz")
    const [command, seconds] = list(at(container, "lifecycle", "preStop", "exec", "command"))
    assert.strictEqual(command, "sleep")
    // `src/server/main.ts` exits after at most 20 seconds.
    assert.isAbove(Number(at(pod, "terminationGracePeriodSeconds")), 20 + Number(seconds))
  })

  it("spreads the runners, keeps two up, and opens the runner port to runners only", () => {
    const own = at(manifest("Deployment"), "spec", "selector")
    assert.deepStrictEqual(at(manifest("PodDisruptionBudget"), "spec", "selector"), own)
    const anti = at(
      pod,
      "affinity",
      "podAntiAffinity",
      "preferredDuringSchedulingIgnoredDuringExecution"
    )
    assert.deepStrictEqual(at(list(anti)[0], "podAffinityTerm", "labelSelector"), own)
    assert.isBelow(
      Number(at(manifest("PodDisruptionBudget"), "spec", "minAvailable")),
      Number(at(manifest("Deployment"), "spec", "replicas"))
    )
    const rules = list(at(manifest("NetworkPolicy"), "spec", "ingress"))
    for (const rule of rules) {
      const ports = list(at(rule, "ports")).map((port) => at(port, "port"))
      if (ports.includes("runner")) assert.deepStrictEqual(at(rule, "from", 0, "podSelector"), own)
    }
  })
})

describe("the TURN server", () => {
  const denied = new BlockList()
  for (const line of turnserver) {
    const [, from, to] = /^denied-peer-ip=([^-]+)-(.+)$/.exec(line) ?? []
    if (from === undefined || to === undefined) continue
    denied.addRange(from, to, isIPv6(from) ? "ipv6" : "ipv4")
  }

  const internal = [
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.31.0.1 192.168.1.1 198.18.0.1",
    "255.255.255.255 ::1 ::127.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1:: 2001:0:a00:1::",
    "fc00::1 fd12:3456::1 fe80::1"
  ]
  it.for(internal.join(" ").split(" "))("refuses to relay to %s", (address) => {
    assert.isTrue(denied.check(address, isIPv6(address) ? "ipv6" : "ipv4"))
  })

  it("relays UDP to public addresses, and no TCP", () => {
    assert.isFalse(denied.check("8.8.8.8", "ipv4"))
    assert.isFalse(denied.check("2606:4700::1111", "ipv6"))
    assert.include(turnserver, "no-tcp-relay")
  })
})
