package config

import (
	"errors"
	"fmt"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

func (a *arguments) readFit(data []byte) error {
	args := configv1.NodeResourcesFitArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	a.fit.IgnoredResources, a.fit.IgnoredGroups = args.IgnoredResources, args.IgnoredResourceGroups
	if args.ScoringStrategy == nil {
		return nil
	}
	return a.readStrategy(args.ScoringStrategy)
}

func (a *arguments) readStrategy(s *configv1.ScoringStrategy) error {
	strategy := noderesourcesfit.Strategy{Type: noderesourcesfit.Type(s.Type)}
	for i, r := range s.Resources {
		w := r.Weight
		if w == 0 {
			w = 1
		}
		if r.Name == "" || w < 1 || w > 100 {
			return fmt.Errorf("scoringStrategy.resources[%d]: %q of weight %d, must have a name and a weight from 1 to 100", i, r.Name, r.Weight)
		}
		strategy.Resources = append(strategy.Resources, noderesourcesfit.Weight{Name: v1.ResourceName(r.Name), Weight: w})
	}
	switch strategy.Type {
	case "", noderesourcesfit.LeastAllocated, noderesourcesfit.MostAllocated:
		if s.RequestedToCapacityRatio != nil {
			return fmt.Errorf("scoringStrategy.requestedToCapacityRatio: is for the type RequestedToCapacityRatio, not %q", s.Type)
		}
	case noderesourcesfit.RequestedToCapacityRatio:
		if s.RequestedToCapacityRatio == nil {
			return errors.New("scoringStrategy.requestedToCapacityRatio: must be set")
		}
		points, err := readCurve("scoringStrategy.requestedToCapacityRatio.shape", s.RequestedToCapacityRatio.Shape)
		if err != nil {
			return err
		}
		strategy.Points = points
	default:
		return fmt.Errorf("scoringStrategy.type: is %q, must be LeastAllocated, MostAllocated or RequestedToCapacityRatio", s.Type)
	}
	a.fit.Strategy = strategy
	return nil
}

func readCurve(field string, list []configv1.UtilizationShapePoint) (points []noderesourcesfit.Point, err error) {
	if len(list) == 0 {
		return nil, errors.New(field + ": must have a point")
	}
	for i, p := range list {
		switch {
		case p.Utilization < 0 || p.Utilization > 100:
			return nil, fmt.Errorf("%s[%d].utilization: is %d, must be from 0 to 100", field, i, p.Utilization)
		case p.Score < 0 || p.Score > 10:
			return nil, fmt.Errorf("%s[%d].score: is %d, must be from 0 to 10", field, i, p.Score)
		case i > 0 && p.Utilization <= list[i-1].Utilization:
			return nil, fmt.Errorf("%s[%d].utilization: is %d, must be greater than the one before", field, i, p.Utilization)
		}
		points = append(points, noderesourcesfit.Point{Utilization: int64(p.Utilization), Score: int64(p.Score)})
	}
	return points, nil
}
