/** Requests about hubs: clusters whose API server has the kinds of a fleet. */
import { count, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { CLUSTER, HELM } from './channel.ts';
import { WEB } from './connection.ts';

export const HUB_MANIFESTS = request('hub manifests', 'Print the kinds of a hub, and the rights of its controller', {
  push: texts(
    'CLUSTER',
    'also print the right to deliver to this cluster, with the Secrets in its namespace; can be repeated',
  ),
  image: text('REF', 'also print a Deployment of the controller with this image'),
});

export const CONTROLLER = request('controller', 'Run the controller of a hub', {
  ...CLUSTER,
  ready: count('PORT', 'GET /ready on this port of 127.0.0.1 is 200 if the controller works, otherwise 503'),
  ...HELM,
  ...WEB,
});
export type ControllerRequest = RequestOf<typeof CONTROLLER.fields>;
