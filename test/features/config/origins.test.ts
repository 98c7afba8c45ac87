/** `web.allowedOrigins`: accepted `Origin` headers and valid entries. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import { originAllowed } from "#rpc/config-document/origins"

const withOrigins = (allowedOrigins: ReadonlyArray<string>) =>
  decodeConfig({ web: { allowedOrigins } })

const config = Result.getOrThrow(
  withOrigins([
    "https://example.com",
    "https://*.games.example",
    "https://*.port.example:8443",
    "http://plain.example:8080",
    "HTTPS://Upper.Example:443",
    "https://xn--bcher-kva.example",
    "capacitor://localhost",
    "tauri://app.local",
    "https://[2001:db8::1]"
  ])
)
const production = { development: false }
const development = { development: true }

describe("an origin of the list", () => {
  it.each([
    "https://example.com",
    "https://example.com:443",
    "HTTPS://EXAMPLE.COM",
    "https://play.games.example",
    "https://Play.Games.Example:443",
    "https://a.b.c.games.example",
    "https://x_y.games.example",
    "https://xn--bcher-kva.games.example",
    "https://a.port.example:8443",
    "http://plain.example:8080",
    "https://upper.example",
    "https://xn--bcher-kva.example",
    "capacitor://localhost",
    "CAPACITOR://LOCALHOST",
    "tauri://app.local",
    "https://[2001:db8::1]"
  ])("accepts the origin %s of the config", (origin) => {
    assert.isTrue(originAllowed(config, origin, production))
  })
})

describe("any other origin", () => {
  it.each([
    // Other schemes, hosts and ports.
    "http://example.com",
    "https://example.com:8443",
    "https://example.com:80",
    "http://example.com:443",
    "wss://example.com",
    "https://www.example.com",
    "https://example.org",
    "http://plain.example",
    "http://plain.example:80",
    "https://plain.example:8080",
    "capacitor://localhost:80",
    "capacitor://app",
    "ionic://localhost",
    "tauri://app.local.evil",
    "https://[2001:db8::2]",
    // The host of a wildcard itself, look-alikes, other ports and schemes.
    "https://games.example",
    "https://.games.example",
    "https://evilgames.example",
    "https://-games.example",
    "https://games.example.evil",
    "https://play.games.example.evil",
    "https://play.games.example.evil.games",
    "https://play.games.examples",
    "https://a..games.example",
    "http://play.games.example",
    "https://play.games.example:8443",
    "https://a.port.example",
    "https://port.example:8443",
    "https://*.games.example",
    // Suffixes, prefixes, and characters that a URL parser would strip.
    "https://example.com.evil",
    "https://example.com.",
    "https://play.games.example.",
    "https://evilexample.com",
    "https://example.comevil",
    "https://example.com/",
    "https://example.com/path",
    "https://example.com?",
    "https://example.com#",
    "https://example.com:",
    "https://example.com:0443",
    "https://example.com:99999",
    "https://example.com:443@evil.example",
    "https://evil.example@example.com",
    "https://@example.com",
    "https://user:pw@example.com",
    "https://example.com\\@evil.example",
    "https:\\\\example.com",
    "https:/example.com",
    "https:///example.com",
    "https:example.com",
    "//example.com",
    "example.com",
    " https://example.com",
    "https://example.com ",
    "https://example.com\n",
    "https://exam\tple.com",
    "https://example.com, https://evil.example",
    "https://example.com https://evil.example",
    "https://evil.example\0.games.example",
    // Names that a URL parser would rewrite into an allowed one.
    "https://ｅxample.com",
    "https://example。com",
    "https://example%2ecom",
    "https://ex%61mple.com",
    "https://exa\u00admple.com",
    "https://bücher.example",
    "https://еxample.com",
    "https://xn--xample-9uf.com",
    "https://[2001:DB8:0::1]",
    // Not an origin.
    "null",
    "NULL",
    "",
    "*",
    "https://",
    "https://*",
    "file://",
    "undefined",
    "data:text/html,x",
    "javascript:alert(1)",
    "blob:https://example.com/0f0f",
    // Loopback hosts are allowed in development only.
    "http://localhost:3000",
    "http://127.0.0.1",
    "http://[::1]:8080"
  ])("rejects the origin %s outside the config", (origin) => {
    assert.isFalse(originAllowed(config, origin, production))
  })
})

describe("in development", () => {
  it.each([
    "http://localhost",
    "http://localhost:3000",
    "https://localhost:5173",
    "http://LOCALHOST:3000",
    "http://127.0.0.1:8080",
    "http://[::1]:8080",
    "https://example.com"
  ])("accepts the origin %s in development", (origin) => {
    assert.isTrue(originAllowed(config, origin, development))
  })

  it.each([
    "http://localhost.evil",
    "http://evil.localhost:3000",
    "http://localhost.",
    "http://localhost@evil.example",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.2",
    "http://127.1",
    "http://0x7f.0.0.1",
    "http://2130706433",
    "http://[::ffff:127.0.0.1]",
    "http://0.0.0.0",
    "ftp://localhost",
    "http://loca\u212ahost",
    "http://192.168.0.2:3000"
  ])("rejects the origin %s in development", (origin) => {
    assert.isFalse(originAllowed(config, origin, development))
  })
})

describe("an empty list", () => {
  it.each(["https://anything.example", "null", "capacitor://x", "http://localhost"])(
    "lets the origin %s pass with an empty list",
    (origin) => {
      assert.isTrue(originAllowed(Result.getOrThrow(decodeConfig({})), origin, production))
    }
  )
})

describe("an entry", () => {
  it.each([
    "http://localhost:3000",
    "http://127.0.0.1",
    "https://*.co.uk",
    "https://a_b.example.com",
    "chrome-extension://abcdefghijklmnop",
    "app://-"
  ])("accepts the origin %s in a config", (entry) => {
    assert.isTrue(Result.isSuccess(withOrigins([entry])))
  })

  it.each([
    "*",
    "",
    "null",
    "example.com",
    "*.example.com",
    "https://",
    "https://*",
    "https://*.com",
    "https://*.*.example.com",
    "https://a.*.example.com",
    "https://example.*",
    "https://*example.com",
    "capacitor://*.example.com",
    "https://example.com/",
    "https://example.com/app",
    "https://example.com?x",
    "https://example.com#x",
    "https://example.com:",
    "https://example.com:*",
    "https://example.com:70000",
    "https://user@example.com",
    "https://bücher.example",
    "https://0x7f.1",
    "https://exa mple.com",
    "https://example.com.",
    "https//example.com",
    "file://"
  ])("refuses the origin %s in a config", (entry) => {
    const issues = Result.match(withOrigins(["https://example.com", entry]), {
      onSuccess: () => [],
      onFailure: ({ details }) => details.issues
    })
    assert.deepStrictEqual(issues, [
      {
        path: "web.allowedOrigins[1]",
        message:
          "must be an origin without a path, like https://app.example.com, " +
          "https://*.example.com, http://localhost:3000 or capacitor://localhost " +
          "(international names in their xn-- form)"
      }
    ])
  })
})
