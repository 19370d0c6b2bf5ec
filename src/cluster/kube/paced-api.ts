/** An API client that sends at most so many requests a second, after a burst. */
import { pause } from '../../platform/limit/repeat.ts';
import type { KubeApi } from './api.ts';

/** After a pause, `burst` requests do not wait. Watches count as nothing: each is one request for minutes. */
export function pacedApi(
  api: KubeApi,
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
): KubeApi {
  let next = -Infinity;
  const ask: KubeApi['ask'] = async (request, options) => {
    const now = performance.now();
    const at = Math.max(now - ((burst - 1) * 1000) / perSecond, next);
    next = at + 1000 / perSecond;
    if (at > now) await pause(at - now, options);
    return api.ask(request, options);
  };
  return { ...api, ask };
}
