import type { FailureReason } from "../../../model/states.ts";

/** Maps an API error to a failure reason: by its HTTP status if the client reported one, otherwise by its message. */
export function classifyApiError(status: number | null, message: string): FailureReason {
  if (status !== null) return classifyStatus(status);
  const inMessage = /\b(?:API Error|status(?: code)?|HTTP|error)\D{0,12}([45]\d\d)\b/i.exec(message)?.[1];
  if (inMessage !== undefined) return classifyStatus(Number(inMessage));
  if (/rate.?limit|too many requests|usage limit|quota|overloaded/i.test(message)) return "provider_rate_limit";
  if (
    /unauthori[sz]ed|authenticat|invalid (?:x-)?api[ -]?key|api key not valid|not logged in|log ?in|credential/i.test(
      message,
    )
  )
    return "provider_auth";
  if (
    /connect|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|network|fetch failed|socket|timed? ?out|stream disconnected|terminated/i.test(
      message,
    )
  )
    return "provider_network";
  return "provider_invalid_response";
}

function classifyStatus(status: number): FailureReason {
  if (status === 401 || status === 403) return "provider_auth";
  if (status === 429) return "provider_rate_limit";
  if (status === 408 || status >= 500) return "provider_network";
  return "provider_invalid_response";
}
