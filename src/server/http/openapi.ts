/** The OpenAPI document as it is committed, `rpc/openapi.json`: a change of the interface is a diff. */
import { OpenApi } from "effect/http-api"
import { Api } from "#rpc/api"

export const openapiText = (): string => `${JSON.stringify(OpenApi.fromApi(Api), null, 2)}\n`
