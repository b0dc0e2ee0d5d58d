// Package authentication describes the kinds of the group authentication.k8s.io: whose a token is, and who one is.
package authentication

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group. Tokens authenticates what TokenReviews ask about; audiences are those of the API itself, which a review means when it names none.
func Group(tokens authenticator.Token, audiences authenticator.Audiences) resource.Group {
	return resource.Group{
		GroupVersion: authenticationv1.SchemeGroupVersion,
		AddToScheme:  authenticationv1.AddToScheme,
		Kinds:        []resource.Description{tokenReview(tokens, audiences), selfReview()},
	}
}

func tokenReview(tokens authenticator.Token, api authenticator.Audiences) resource.Description {
	return &resource.Review[*authenticationv1.TokenReview]{
		Resource: "tokenreviews", ClusterWide: true,
		New: func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} },
		Answer: func(ctx context.Context, r *authenticationv1.TokenReview) error {
			if r.Spec.Token == "" {
				return apierrors.NewBadRequest("token is required for TokenReview in authentication")
			}
			audiences := authenticator.Audiences(r.Spec.Audiences)
			if len(audiences) == 0 {
				audiences = api
			}
			response, ok, err := tokens.AuthenticateToken(authenticator.WithAudiences(ctx, audiences), r.Spec.Token)
			r.Status = authenticationv1.TokenReviewStatus{}
			if err != nil {
				r.Status.Error = err.Error()
			}
			if !ok || err != nil {
				return nil
			}
			r.Status.Authenticated, r.Status.User = true, userInfo(response.User)
			r.Status.Audiences = response.Audiences
			return nil
		},
	}
}

func selfReview() resource.Description {
	return &resource.Review[*authenticationv1.SelfSubjectReview]{
		Resource: "selfsubjectreviews", ClusterWide: true,
		New: func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} },
		Answer: func(ctx context.Context, r *authenticationv1.SelfSubjectReview) error {
			u, ok := request.UserFrom(ctx)
			if !ok {
				return apierrors.NewBadRequest("no user present on request")
			}
			r.Status.UserInfo = userInfo(u)
			return nil
		},
	}
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
