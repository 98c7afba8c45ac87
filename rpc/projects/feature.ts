/** The feature `projects`. */
import { feature } from "../feature.ts"
import { EnvironmentApi, EnvironmentViewsApi } from "./environment.ts"
import { KeyApi, ProjectApi, ProjectsApi } from "./projects.ts"

export const projectsFeature = feature({
  word: "projects",
  groups: [KeyApi, ProjectsApi, ProjectApi, EnvironmentApi],
  inProcess: [EnvironmentViewsApi]
})
