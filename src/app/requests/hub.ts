/** Requests about hubs: clusters whose API server has the kinds of a fleet. */
import { count, text } from '../../core/field.ts';
import { request } from '../../core/request.ts';
import { CLUSTER } from './channel.ts';

export const HUB_MANIFESTS = request('hub manifests', 'Print the kinds of a hub, and the rights of its controller', {
  image: text('REF', 'also print a Deployment of the controller with this image'),
});

export const CONTROLLER = request('controller', 'Run the controller of a hub', {
  ...CLUSTER,
  ready: count('PORT', 'GET /ready on this port of 127.0.0.1 is 200 if the controller works, otherwise 503'),
});
