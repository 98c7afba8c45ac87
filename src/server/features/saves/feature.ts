/** Cloud saves, as the service composes them. */
import { SaveRepository } from "#sql/saves"
import { SavesHttp } from "./handlers.ts"

export const saves = { repositories: SaveRepository.layer, routes: SavesHttp }
