/** Checks the settings page, and that no text names a setting that does not exist. */
import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { settingsPageText } from "#server/build/settings-page"
import { variables } from "#server/platform/settings/settings"

const root = new URL("../../", import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), "utf8")

/** Variables of `svc`, and of the passwords that `compose.yaml` gives its database. */
const others = [
  "SVC_URL",
  "SVC_KEY",
  "SVC_SECRET_KEY",
  "SVC_PUBLISHABLE_KEY",
  "SVC_CONFIG_DIR",
  "SVC_APP_PASSWORD",
  "SVC_OWNER_PASSWORD"
]

describe("the settings page", () => {
  it("commits the page that the tables of settings generate (otherwise: npm run generate)", () => {
    assert.strictEqual(read("docs/operations/settings.md"), settingsPageText())
  })

  it("names no setting that does not exist, in the product, its deployment and its guides", () => {
    const known = new Set([...Object.keys(variables), ...others])
    const pages = [
      "{README.md,compose.yaml,Dockerfile}",
      "{docs,deploy,src,rpc}/**/*.{md,ts,tsx,yaml,sql}"
    ]
    const unknown = globSync(pages, { cwd: root }).flatMap((path) =>
      Array.from(read(path).matchAll(/\bSVC_[A-Z0-9_]*[A-Z0-9]\b/g), ([name]) => name)
        .filter((name) => !known.has(name))
        .map((name) => `${path}: ${name}`)
    )
    assert.deepStrictEqual(unknown, [])
  })
})
