/** Writes the files that are derived from the definitions in `rpc/` and the settings: `npm run generate`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { clientTypesText } from "./client-types.ts"
import { settingsPageText } from "./settings-page.ts"
import { asyncapiText } from "../http/asyncapi.ts"
import { authorizationText } from "../http/authorization.ts"
import { openapiText } from "../http/openapi.ts"

const generate = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const write = Effect.fnUntraced(function* (file: string, text: string) {
    const target = yield* path.fromFileUrl(new URL(`../../../${file}`, import.meta.url))
    yield* fs.writeFileString(target, text)
  })
  yield* write("rpc/authorization.md", authorizationText())
  yield* write("rpc/asyncapi.json", asyncapiText())
  yield* write("rpc/openapi.json", openapiText())
  yield* write("rpc/config.schema.json", configJsonSchemaText())
  yield* write("docs/operations/settings.md", settingsPageText())
  yield* write("src/client/wire.ts", clientTypesText())
})

generate.pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
