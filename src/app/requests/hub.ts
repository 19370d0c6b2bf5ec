/** Requests about hubs: clusters whose API server has the kinds of a fleet. */
import { text } from '../../core/field.ts';
import { request, type RequestOf } from '../../core/request.ts';

export const HUB_MANIFESTS = request('hub manifests', 'Print what a hub needs: its kinds, rights, and a controller', {
  image: text('REF', 'also print a Deployment of the controller with this image'),
});
export type HubManifestsRequest = RequestOf<typeof HUB_MANIFESTS.fields>;
