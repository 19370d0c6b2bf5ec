/** An API client that sends at most so many requests a second. */
import { pause } from '../platform/limit/repeat.ts';
import type { KubeApi } from './api.ts';

/** Watches count as nothing: each is one request for minutes. */
export function pacedApi(api: KubeApi, perSecond: number): KubeApi {
  let next = 0;
  const ask: KubeApi['ask'] = async (request, options) => {
    const now = performance.now();
    const at = Math.max(now, next);
    next = at + 1000 / perSecond;
    if (at > now) await pause(at - now, options);
    return api.ask(request, options);
  };
  return { ...api, ask };
}
