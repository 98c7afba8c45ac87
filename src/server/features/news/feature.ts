/** News, as the service composes it. */
import { NewsRepository } from "#sql/news"
import { NewsHttp } from "./handlers.ts"

export const news = { repositories: NewsRepository.layer, routes: NewsHttp }
