/** Code that connects a game to this service, with the environment's own key. */
import type { ProjectKey } from "#rpc/projects/projects"

/** The publishable key that a sample shows. */
export const publishableKeyOf = (keys: ReadonlyArray<ProjectKey>): string =>
  keys.find(({ kind, plain }) => kind === "publishable" && plain !== null)?.plain ?? "pk_..."

/** A page that signs a guest in. */
export const clientSnippet = (key: string): string =>
  [
    `import { createClient } from "${location.origin}/sdk/client.js"`,
    ``,
    `const client = createClient({`,
    `  baseUrl: "${location.origin}",`,
    `  key: "${key}"`,
    `})`,
    `const player = await client.sessions.ensure()`
  ].join("\n")

/** The same request from a terminal. */
export const curlSnippet = (key: string): string =>
  [
    `curl -X POST ${location.origin}/v1/auth/guest \\`,
    `  -H "x-svc-key: ${key}" \\`,
    `  -H "content-type: application/json" -d '{}'`
  ].join("\n")
