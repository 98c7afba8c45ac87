/** Ages, as the service composes them. */
import { AgeRepository } from "#sql/ages"
import { AgesHttp } from "./handlers.ts"

export const ages = { repositories: AgeRepository.layer, routes: AgesHttp }
