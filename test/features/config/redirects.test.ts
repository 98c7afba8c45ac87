/** `auth.redirectUrls`: accepted redirect URLs and valid entries. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { redirectUrlAllowed } from "#rpc/config-document/auth"
import { decodeConfig } from "#rpc/config-document/document"

const withUrls = (redirectUrls: ReadonlyArray<string>) => decodeConfig({ auth: { redirectUrls } })

const config = Result.getOrThrow(
  withUrls([
    "https://example.com/signed-in",
    "https://example.com/app/*",
    "https://root.example",
    "https://query.example/cb?from=mail",
    "https://half.example/play*",
    "http://port.example:8080/cb",
    "https://xn--bcher-kva.example/",
    "myapp://signed-in",
    "myapp://deep/link/*",
    "com.example.app:/oauth"
  ])
)
const production = { development: false }
const development = { development: true }

describe("a URL of the list", () => {
  it.each([
    "https://example.com/signed-in",
    "https://example.com/signed-in?",
    "https://example.com/signed-in?a=1&b=%2F%5C",
    "https://example.com/signed-in?next=https://elsewhere.example/../@x",
    "https://example.com/app/",
    "https://example.com/app/a",
    "https://example.com/app/a/b/c.html?x=*",
    "https://example.com/app/*",
    "https://example.com/app/%C3%BC",
    "https://example.com/app//a",
    "https://root.example",
    "https://root.example/",
    "https://root.example?x=1",
    "https://root.example/?x=1",
    "https://query.example/cb",
    "https://query.example/cb?from=mail",
    "https://query.example/cb?other",
    "https://half.example/play",
    "https://half.example/play/level/1",
    "https://half.example/player",
    "http://port.example:8080/cb",
    "https://xn--bcher-kva.example/",
    "myapp://signed-in",
    "myapp://signed-in?x=1",
    "myapp://deep/link/here",
    "com.example.app:/oauth",
    "com.example.app:/oauth?x=1"
  ])("allows the redirect URL %s of the config", (url) => {
    assert.isTrue(redirectUrlAllowed(config, url, production))
  })
})

describe("any other URL", () => {
  it.each([
    // Other paths.
    "https://example.com",
    "https://example.com/",
    "https://example.com/signed-in/",
    "https://example.com/signed-in/more",
    "https://example.com/signed-i",
    "https://example.com/signed-inn",
    "https://example.com/Signed-In",
    "https://example.com/app",
    "https://example.com/apple/",
    "https://example.com/APP/a",
    "https://example.com/other/app/",
    "https://half.example/Play",
    "https://half.example/",
    "https://root.example/more",
    // Path traversal out of the prefix: plain, encoded and double encoded.
    "https://example.com/app/..",
    "https://example.com/app/../admin",
    "https://example.com/app/./a",
    "https://example.com/app/%2e%2e/admin",
    "https://example.com/app/.%2E/admin",
    "https://example.com/app/..%2fadmin",
    "https://example.com/app/%2F..%2Fadmin",
    "https://example.com/app/..%5cadmin",
    "https://example.com/app/%252e%252e/admin",
    "https://example.com/app%2fa",
    "https://example.com/app/a%00b",
    "https://example.com/app\\a",
    "https://example.com/app/\\..\\admin",
    // Look-alike hosts.
    "https://example.com.evil/signed-in",
    "https://evilexample.com/signed-in",
    "https://www.example.com/signed-in",
    "https://example.com./signed-in",
    "https://evil.example/https://example.com/signed-in",
    "https://evil.example/?https://example.com/signed-in",
    "https://evil.example#https://example.com/signed-in",
    "https://example.com@evil.example/signed-in",
    "https://evil.example\\@example.com/signed-in",
    "https://example.com\\.evil.example/signed-in",
    "https://user@example.com/signed-in",
    "https://user:pw@example.com/signed-in",
    "https://@example.com/signed-in",
    "https://:@example.com/signed-in",
    "https://еxample.com/signed-in",
    "https://ｅxample.com/signed-in",
    "https://example。com/signed-in",
    "https://ex%61mple.com/signed-in",
    "https://bücher.example/",
    // Other schemes and ports, and forms that a URL parser would repair.
    "http://example.com/signed-in",
    "https://example.com:8443/signed-in",
    "https://example.com:443/signed-in",
    "http://port.example/cb",
    "https://port.example:8080/cb",
    "HTTPS://example.com/signed-in",
    "https://EXAMPLE.com/signed-in",
    "https:/example.com/signed-in",
    "https:example.com/signed-in",
    "https:///example.com/signed-in",
    "//example.com/signed-in",
    "/signed-in",
    " https://example.com/signed-in",
    "https://example.com/signed-in ",
    "https://example.com/signed-in\n",
    "https://exam\tple.com/signed-in",
    "https://example.com/signed-in?a=\r\nLocation:x",
    "https://example.com/app/ü",
    // A fragment would swallow the sign-in code.
    "https://example.com/signed-in#",
    "https://example.com/signed-in#x",
    "https://example.com/app/a?x#y",
    // Deep links.
    "myapp://signed-in/",
    "myapp://signed-in.evil",
    "myapp://SIGNED-IN",
    "myapp://deep/link",
    "myapp://deep/link/../x",
    "myapp:signed-in",
    "otherapp://signed-in",
    "com.example.app://oauth",
    "com.example.app:/oauth/x",
    // Not a URL.
    "",
    "*",
    "null",
    "javascript:alert(1)",
    "javascript://example.com/signed-in",
    "data:text/html,x",
    "blob:https://example.com/signed-in",
    "file:///signed-in",
    "http://localhost:3000/"
  ])("rejects the redirect URL %s outside the config", (url) => {
    assert.isFalse(redirectUrlAllowed(config, url, production))
  })
})

describe("in development", () => {
  it.each([
    "http://localhost:3000",
    "http://localhost:3000/any/path?x=1",
    "https://localhost/",
    "http://127.0.0.1:8080/cb",
    "http://[::1]:8080/cb"
  ])("allows the redirect URL %s in development", (url) => {
    assert.isTrue(redirectUrlAllowed(config, url, development))
  })

  it.each([
    "http://localhost.evil/",
    "http://localhost@evil.example/",
    "http://me@localhost:3000/",
    "http://localhost:3000/#x",
    "http://127.1/",
    "http://0x7f000001/",
    "http://evil.example/localhost",
    "myapp://localhost",
    "javascript://localhost/%0aalert(1)"
  ])("rejects the redirect URL %s in development", (url) => {
    assert.isFalse(redirectUrlAllowed(config, url, development))
  })
})

describe("an empty list", () => {
  it("allows no redirect URL with an empty list", () => {
    const empty = Result.getOrThrow(decodeConfig({}))
    assert.isFalse(redirectUrlAllowed(empty, "https://example.com/", production))
  })
})

describe("an entry", () => {
  it.each([
    "https://example.com",
    "https://example.com/*",
    "http://localhost:3000/cb",
    "https://example.com/a?b=c",
    "myapp:///*",
    "com.example.app:/oauth/*"
  ])("accepts the redirect URL %s in a config", (entry) => {
    assert.isTrue(Result.isSuccess(withUrls([entry])))
  })

  it.each([
    "",
    "*",
    "/signed-in",
    "example.com/signed-in",
    "https://*",
    "https://*.example.com/cb",
    "https://example.com*",
    "https://example.com:*",
    "https://example.com/*/cb",
    "https://example.com/**",
    "https://example.com/?x=*",
    "https://example.com/cb#",
    "https://example.com/cb#x",
    "https://user@example.com/cb",
    "https://EXAMPLE.com/cb",
    "https://example.com:443/cb",
    "https://example.com/a/../b",
    "https://example.com/a%2fb",
    "https://example.com/a b",
    "https://bücher.example/cb",
    "myapp:*",
    "myapp://host*",
    "mailto:me@example.com",
    "javascript:alert(1)",
    "javascript://example.com/*",
    "data:text/html,x",
    "file:///cb"
  ])("refuses the redirect URL %s in a config", (entry) => {
    const issues = Result.match(withUrls(["https://example.com/cb", entry]), {
      onSuccess: () => [],
      onFailure: ({ details }) => details.issues
    })
    assert.deepStrictEqual(issues, [
      {
        path: "auth.redirectUrls[1]",
        message:
          "must be a URL in its normal form, without user name and fragment, like " +
          "https://example.com/signed-in, https://example.com/app/* or myapp://signed-in"
      }
    ])
  })
})
