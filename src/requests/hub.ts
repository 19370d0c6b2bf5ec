/** Requests about hubs: clusters whose API server has the kinds of a fleet. */
import * as v from 'valibot';
import { choiceOf, many, port, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { CLUSTER, HELM, METRICS } from './channel.ts';
import { WEB } from './connection.ts';

const UPSTREAM = ['helmchartproxies', 'clustermanagementaddons'] as const;
const KINDS = choiceOf(UPSTREAM);
/** Several in one text, with commas. */
const kindLists = many<readonly (typeof UPSTREAM)[number][]>({
  schema: v.array(KINDS.schema),
  read: (text, option) => text.split(',').map((one) => KINDS.read(one.trim(), option)),
});

export const HUB_MANIFESTS = request('hub manifests', {
  push: texts(
    'CLUSTER',
    'also print the right to deliver to this cluster and to read the Secrets in its namespace; can be repeated',
  ),
  valuesSecret: texts(
    'NAME',
    'also print the right to read this Secret in curlew-system, for valuesSecret of add-ons; can be repeated',
  ),
  valuesConfigMap: texts(
    'NAME',
    'also print the right to read this ConfigMap in curlew-system, for valuesConfigMap of add-ons; can be repeated',
  ),
  signer: texts(
    'NAME=SECRET',
    'also print the right to sign certificates of this signer with the authority in this Secret, as NAMESPACE/NAME; can be repeated',
  ),
  reconcile: kindLists('KINDS', 'also print the rights that the controller needs for these kinds of other programs'),
  image: text('REF', 'also print a Deployment of the controller with this image'),
});

export const CONTROLLER = request('controller', {
  ...CLUSTER,
  ready: port('PORT', 'serve GET /ready on this port of 127.0.0.1: 200 if the controller works, otherwise 503'),
  ...METRICS,
  reconcile: kindLists(
    'KINDS',
    `take objects of other programs: ${UPSTREAM.join(', ')}; separated by commas, or repeated`,
  ),
  ...HELM,
  ...WEB,
});
export type ControllerRequest = RequestOf<typeof CONTROLLER.fields>;
