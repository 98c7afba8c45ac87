/** The feature `projects`. */
import { Schema } from "effect"
import { feature } from "../feature.ts"
import { EnvironmentApi, EnvironmentViewsApi } from "./environment.ts"
import { KeyApi, ProjectApi, ProjectsApi } from "./projects.ts"

export const projectsFeature = feature({
  word: "projects",
  groups: [KeyApi, ProjectsApi, ProjectApi, EnvironmentApi],
  inProcess: [EnvironmentViewsApi],
  exported: {
    /** Days on which the player was active. */
    days: Schema.Array(Schema.String)
  }
})
