/** The OpenAPI document as committed in `rpc/openapi.json`, so an API change shows in a diff. */
import { OpenApi } from "effect/http-api"
import { Api } from "#rpc/api"

export const openapiText = (): string => `${JSON.stringify(OpenApi.fromApi(Api), null, 2)}\n`
