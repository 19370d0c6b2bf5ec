/** Requests about fleets. */
import { duration, flag, paths } from '../../core/field.ts';
import { request, type RequestOf } from '../../core/request.ts';

const FILES = {
  files: paths('FILES', 'files and folders with the clusters and add-ons of a fleet', {
    operand: true,
    required: 'specify the files or the folder of a fleet',
  }),
};
export type FleetRequest = RequestOf<typeof FILES>;

export const FLEET_CHECK = request('fleet check', 'Check the files of a fleet', FILES);

export const FLEET_PLAN = request(
  'fleet plan',
  'Show what would change in a fleet now, and what waits',
  {
    ...FILES,
    timeout: duration('TIME', 'limit of the wait for the answer of a cluster (default: 20s)'),
  },
  { all: flag('also show what is as it is to be') },
);
export type FleetPlanRequest = RequestOf<typeof FLEET_PLAN.fields>;
