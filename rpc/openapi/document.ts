/** The OpenAPI document as generated clients and readers need it, from what Effect generates. */
import { withExamples } from "./examples.ts"
import { isJson } from "./json.ts"
import { describeParameters, markOptionalBodies, nameOperations, nameRequests } from "./requests.ts"
import { describeResponses, nameErrors, openResponses } from "./responses.ts"

const steps = [
  nameOperations,
  openResponses,
  nameErrors,
  describeResponses,
  markOptionalBodies,
  nameRequests,
  describeParameters,
  withExamples
]

export const finishDocument = (document: unknown): Record<string, unknown> => {
  const finished = steps.reduce((current, step) => step(current), document)
  return isJson(finished) ? { ...finished } : {}
}
